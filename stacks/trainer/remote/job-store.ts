/** A job's objects in the bucket: what to do, what its machines say, what became of it. */
import { readFileSync } from "node:fs";
import { GetObjectCommand, PutObjectCommand, type S3Client, S3ServiceException } from "@aws-sdk/client-s3";

export type JobState = "running" | "done" | "failed" | "interrupted" | "too_long" | "idle";

export interface JobStatus {
  readonly state: JobState;
  readonly exit_code: number | null;
  readonly machine: string;
  /** RFC 3339. */
  readonly at: string;
}

export interface JobRecord {
  readonly arguments: readonly string[];
  /** RFC 3339; when somebody last began to start a machine for it. */
  readonly ordered_at: string;
}

export interface JobStore {
  /** The record, and the version that `write` has to find. Undefined when there is none. */
  readRecord(): Promise<{ readonly record: JobRecord; readonly version: string } | undefined>;
  /** False when somebody else has written since that version was read, or, without one, since there was none. */
  writeRecord(record: JobRecord, version: string | undefined): Promise<boolean>;
  putFile(name: string, path: string): Promise<void>;
  readStatus(): Promise<JobStatus | undefined>;
  /** What a machine has said from that byte on; empty when nothing more. */
  readLog(machine: string, fromByte: number): Promise<Uint8Array>;
}

export function openJobStore(s3: S3Client, bucket: string, job: string): JobStore {
  const key = (path: string) => ({ Bucket: bucket, Key: `jobs/${job}/${path}` });
  return {
    async readRecord() {
      const object = await unlessMissing(() => s3.send(new GetObjectCommand(key("job.json"))));
      if (object?.Body === undefined) return undefined;
      return { record: JSON.parse(await object.Body.transformToString()), version: object.ETag ?? "" };
    },
    async writeRecord(record, version) {
      const condition = version === undefined ? { IfNoneMatch: "*" } : { IfMatch: version };
      const body = JSON.stringify(record, null, 2);
      try {
        await s3.send(new PutObjectCommand({ ...key("job.json"), Body: body, ...condition }));
        return true;
      } catch (error) {
        // 412: it is not as it was read. 409: somebody writes it at this moment.
        if (hasStatus(error, 412) || hasStatus(error, 409)) return false;
        throw error;
      }
    },
    async putFile(name, path) {
      await s3.send(new PutObjectCommand({ ...key(`files/${name}`), Body: readFileSync(path) }));
    },
    async readStatus() {
      const object = await unlessMissing(() => s3.send(new GetObjectCommand(key("status.json"))));
      return object?.Body === undefined ? undefined : JSON.parse(await object.Body.transformToString());
    },
    async readLog(machine, fromByte) {
      const ask = { ...key(`log/${machine}.txt`), Range: `bytes=${fromByte}-` };
      const object = await unlessMissing(() => s3.send(new GetObjectCommand(ask)));
      return object?.Body === undefined ? new Uint8Array() : object.Body.transformToByteArray();
    },
  };
}

/** Nothing there, or nothing from that byte on. */
async function unlessMissing<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (hasStatus(error, 404) || hasStatus(error, 416)) return undefined;
    throw error;
  }
}

function hasStatus(error: unknown, status: number): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === status;
}
