/** What a deployment with a trainer leaves in AWS: the bucket with the trainer's code, and the machine's API key. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import type { AwsStandIn } from "./stand-in.ts";

export const machineKey = "key-of-the-machine";
export const keyParameter = "/code-rewards/ci/trainer/api-key";

export interface TrainingSite {
  readonly bucket: string;
  readonly s3: S3Client;
  /** The text of an object, undefined when there is none. */
  read(key: string): Promise<string | undefined>;
  write(key: string, content: string | Uint8Array): Promise<void>;
  list(prefix: string): Promise<string[]>;
}

export function localClient({ url }: Pick<AwsStandIn, "url">) {
  return {
    endpoint: url,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  };
}

/** `sources` is the folder that the machine's code is made of. */
export async function makeTrainingSite(
  aws: AwsStandIn,
  bucket: string,
  sources: string,
): Promise<TrainingSite> {
  const s3 = new S3Client({ ...localClient(aws), forcePathStyle: true });
  const ssm = new SSMClient(localClient(aws));
  await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  const site: TrainingSite = {
    bucket,
    s3,
    async read(key) {
      try {
        const object = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
        return await object.Body?.transformToString();
      } catch (error) {
        if (error instanceof NoSuchKey) return undefined;
        throw error;
      }
    },
    async write(key, content) {
      await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: content }));
    },
    async list(prefix) {
      const found = await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }));
      return (found.Contents ?? []).map(({ Key }) => Key?.slice(prefix.length) ?? "");
    },
  };
  await site.write("trainer.zip", zip(sources));
  await ssm.send(
    new PutParameterCommand({ Name: keyParameter, Value: machineKey, Type: "SecureString", Overwrite: true }),
  );
  return site;
}

function zip(folder: string): Uint8Array {
  const path = join(tmpdir(), `code-rewards-trainer-${process.pid}-${Date.now()}.zip`);
  try {
    const parts = ["pyproject.toml", "uv.lock", "README.md", "src"].filter((name) =>
      existsSync(join(folder, name)),
    );
    execFileSync("python3", ["-m", "zipfile", "-c", path, ...parts], { cwd: folder });
    return readFileSync(path);
  } finally {
    rmSync(path, { force: true });
  }
}
