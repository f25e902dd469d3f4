/**
 * A GPU machine for training, as a launch template: nothing runs before somebody starts it, and each ends itself.
 *
 * Nobody can reach it: no port is open, and a shell comes through Session Manager. It can read its own API key and write
 * under its own bucket's `jobs/`, and nothing else of the account.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "./config.ts";
import { endpoint } from "./endpoint.ts";
import { serviceName } from "./functions.ts";
import { rewardApiKeys } from "./secrets.ts";

const config = readConfig($app.stage).trainer;

/** Ubuntu with NVIDIA's driver. Looked up when a machine starts, so that it is never an image that is gone. */
const image =
  "resolve:ssm:/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id";

function createTrainer(keys: sst.Secret) {
  const bucket = new sst.aws.Bucket("Training", { cors: false });
  new aws.s3.BucketObjectv2("TrainerCode", {
    bucket: bucket.name,
    key: "trainer.zip",
    source: new $util.asset.AssetArchive(trainerFiles()),
  });
  // The functions' secrets can't be read from a machine: it has a copy of the first key, encrypted.
  const apiKey = new aws.ssm.Parameter("TrainerApiKey", {
    name: `/${$app.name}/${$app.stage}/trainer/api-key`,
    type: "SecureString",
    value: keys.value.apply((all) => all.split(",")[0]?.trim() ?? ""),
  });
  const profile = createProfile(bucket, apiKey);
  const template = new aws.ec2.LaunchTemplate("Trainer", {
    name: `${serviceName}-trainer`,
    updateDefaultVersion: true,
    imageId: image,
    instanceType: config.instanceType,
    iamInstanceProfile: { arn: profile.arn },
    vpcSecurityGroupIds: [createSecurityGroup().id],
    // What ends itself must not lie about, with a disk that costs.
    instanceInitiatedShutdownBehavior: "terminate",
    metadataOptions: {
      httpEndpoint: "enabled",
      httpTokens: "required",
      httpPutResponseHopLimit: 1,
      instanceMetadataTags: "enabled",
    },
    blockDeviceMappings: [
      {
        deviceName: "/dev/sda1",
        ebs: {
          volumeSize: config.diskGib,
          volumeType: "gp3",
          encrypted: "true",
          deleteOnTermination: "true",
        },
      },
    ],
    ...(config.spot
      ? {
          instanceMarketOptions: {
            marketType: "spot",
            spotOptions: { spotInstanceType: "one-time", instanceInterruptionBehavior: "terminate" },
          },
        }
      : {}),
    // For `npm run train:remote`, which is told the stage only.
    tags: {
      "code-rewards-bucket": bucket.name,
      "code-rewards-max-hours": String(config.maxHours),
      "code-rewards-disk-gib": String(config.diskGib),
    },
    userData: $util
      .all([bucket.name, apiKey.name, endpoint.url])
      .apply(([bucketName, parameter, url]) => encodeUserData({ bucketName, parameter, url })),
  });
  return { bucket, template };
}

/** What a machine is made of: the project, without tests, environments and what Python leaves behind. */
function trainerFiles(): Record<string, $util.asset.FileAsset> {
  const sources = readdirSync("trainer/src", { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("__pycache__"))
    .map((entry) => join(entry.parentPath, entry.name));
  const paths = ["trainer/pyproject.toml", "trainer/uv.lock", "trainer/README.md", ...sources];
  return Object.fromEntries(
    paths.map((path) => [path.slice("trainer/".length), new $util.asset.FileAsset(path)]),
  );
}

function createSecurityGroup() {
  return new aws.ec2.SecurityGroup("TrainerNetwork", {
    description: "Training machines: nothing in, HTTPS out",
    vpcId: aws.ec2.getVpcOutput({ default: true }).id,
    ingress: [],
    egress: [{ protocol: "tcp", fromPort: 443, toPort: 443, cidrBlocks: ["0.0.0.0/0"] }],
  });
}

function createProfile(bucket: sst.aws.Bucket, apiKey: aws.ssm.Parameter) {
  const role = new aws.iam.Role("TrainerRole", {
    name: `${serviceName}-trainer`,
    assumeRolePolicy: aws.iam.assumeRolePolicyForPrincipal({ Service: "ec2.amazonaws.com" }),
  });
  new aws.iam.RolePolicy("TrainerPolicy", {
    role: role.name,
    policy: aws.iam.getPolicyDocumentOutput({
      statements: [
        { actions: ["ssm:GetParameter"], resources: [apiKey.arn] },
        { actions: ["s3:GetObject"], resources: [$interpolate`${bucket.arn}/trainer.zip`] },
        { actions: ["s3:GetObject", "s3:PutObject"], resources: [$interpolate`${bucket.arn}/jobs/*`] },
        // Only what a later checkpoint has replaced.
        { actions: ["s3:DeleteObject"], resources: [$interpolate`${bucket.arn}/jobs/*/output/checkpoint-*`] },
        {
          actions: ["s3:ListBucket"],
          resources: [bucket.arn],
          conditions: [{ test: "StringLike", variable: "s3:prefix", values: ["jobs/*"] }],
        },
        // Session Manager. Its actions know no resource; the platform's own policy for it reads every parameter.
        {
          actions: [
            "ssm:UpdateInstanceInformation",
            "ssmmessages:CreateControlChannel",
            "ssmmessages:CreateDataChannel",
            "ssmmessages:OpenControlChannel",
            "ssmmessages:OpenDataChannel",
          ],
          resources: ["*"],
        },
      ],
    }).json,
  });
  return new aws.iam.InstanceProfile("TrainerProfile", { name: `${serviceName}-trainer`, role: role.name });
}

/** The boot script with this stage's facts before it. */
function encodeUserData({
  bucketName,
  parameter,
  url,
}: Readonly<Record<"bucketName" | "parameter" | "url", string>>) {
  const facts = {
    BUCKET: bucketName,
    API_KEY_PARAMETER: parameter,
    CODE_REWARDS_URL: url,
    MAX_S: String(Math.round(config.maxHours * 3_600)),
    IDLE_S: String(config.idleMinutes * 60),
  };
  const lines = Object.entries(facts).map(
    ([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'`,
  );
  const script = readFileSync("stacks/trainer/boot.sh", "utf8");
  return Buffer.from(["#!/usr/bin/env bash", ...lines, script].join("\n")).toString("base64");
}

export const trainer =
  config.enabled && rewardApiKeys !== undefined ? createTrainer(rewardApiKeys) : undefined;
