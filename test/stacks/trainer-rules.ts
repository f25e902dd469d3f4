/** What must hold of the training machine. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Graph } from "./graph.ts";
import { secretValues } from "./graph.ts";
import { projectRoot } from "./platform.ts";
import { allowances, resourcesOf, type Statement, theResource, trustedBy } from "./reading.ts";
import { type Rule, rule } from "./rule.ts";

const templateType = "aws:ec2/launchTemplate:LaunchTemplate";
const bucketName = expect.stringMatching(/^code-rewards-ci-trainingbucket-\w+$/);

function template(graph: Graph) {
  return theResource(graph, templateType, "Trainer").inputs;
}

export function bootScript(graph: Graph): string {
  return Buffer.from(template(graph).userData, "base64").toString();
}

/** Of the lines that a deployment writes before the script. */
function facts(graph: Graph): Record<string, string> {
  const lines = [...bootScript(graph).matchAll(/^export (\w+)='(.*)'$/gm)];
  return Object.fromEntries(lines.map(([, name, value]) => [name, value]));
}

export const trainerRules: readonly Rule[] = [
  rule(
    "trainer",
    "a trainer is a template: no machine runs, or costs, before somebody starts it",
    (graph) => {
      const kinds = graph.resources.map(({ type }) => type).filter((type) => type.startsWith("aws:ec2/"));
      expect(kinds.toSorted()).toEqual([templateType, "aws:ec2/securityGroup:SecurityGroup"]);
      expect(template(graph).name).toBe("code-rewards-ci-trainer");
      expect(template(graph).updateDefaultVersion).toBe(true);
      expect(graph.outputs).toMatchObject({ trainer: "code-rewards-ci-trainer", training: bucketName });
    },
  ),
  rule("trainer", "nobody can reach it, and it reaches HTTPS only", (graph) => {
    const { ingress, egress } = theResource(graph, "aws:ec2/securityGroup:SecurityGroup").inputs;
    expect(ingress).toEqual([]);
    expect(egress).toEqual([{ protocol: "tcp", fromPort: 443, toPort: 443, cidrBlocks: ["0.0.0.0/0"] }]);
    expect(template(graph).vpcSecurityGroupIds).toHaveLength(1);
    for (const absent of ["keyName", "networkInterfaces", "securityGroupNames"]) {
      expect(template(graph)).not.toHaveProperty(absent);
    }
  }),
  rule("trainer", "its metadata wants a token, and stays on the machine", (graph) => {
    expect(template(graph).metadataOptions).toEqual({
      httpEndpoint: "enabled",
      httpTokens: "required",
      httpPutResponseHopLimit: 1,
      instanceMetadataTags: "enabled",
    });
  }),
  rule("trainer", "its disk is encrypted, and goes with it when it shuts itself down", (graph) => {
    const { blockDeviceMappings, instanceInitiatedShutdownBehavior } = template(graph);
    expect(instanceInitiatedShutdownBehavior).toBe("terminate");
    expect(blockDeviceMappings).toEqual([
      {
        deviceName: "/dev/sda1",
        ebs: { volumeSize: 200, volumeType: "gp3", encrypted: "true", deleteOnTermination: "true" },
      },
    ]);
  }),
  rule("trainer", "it is a spot machine of the current deep-learning image", (graph) => {
    expect(template(graph)).toMatchObject({
      instanceType: "g6.xlarge",
      imageId: expect.stringMatching(
        /^resolve:ssm:\/aws\/service\/deeplearning\/ami\/x86_64\/.*\/latest\/ami-id$/,
      ),
      instanceMarketOptions: {
        marketType: "spot",
        spotOptions: { spotInstanceType: "one-time", instanceInterruptionBehavior: "terminate" },
      },
    });
  }),
  rule("steady", "kind, price and size are settings", (graph) => {
    expect(template(graph)).toMatchObject({ instanceType: "g5.12xlarge" });
    expect(template(graph)).not.toHaveProperty("instanceMarketOptions");
    expect(template(graph).blockDeviceMappings[0].ebs.volumeSize).toBe(500);
    expect(template(graph).tags).toMatchObject({
      "code-rewards-max-hours": "1.5",
      "code-rewards-disk-gib": "500",
    });
    expect(facts(graph)).toMatchObject({ MAX_S: "5400", IDLE_S: "420" });
  }),
  rule("trainer", "it may read its key and its code, keep its job's files, and nothing else", (graph) => {
    const bucket = resourcesOf(graph, "aws:s3/bucket:Bucket")[0]?.inputs.bucket;
    const under = (path: string) => [`arn:aws:s3:::${bucket}/${path}`];
    expect(allowances(graph, "TrainerRole")).toEqual([
      [
        ["ssm:GetParameter"],
        ["arn:aws:ssm:us-east-1:123456789012:parameter/code-rewards/ci/trainer/api-key"],
      ],
      [["s3:GetObject"], under("trainer.zip")],
      [["s3:GetObject", "s3:PutObject"], under("jobs/*")],
      [["s3:DeleteObject"], under("jobs/*/output/checkpoint-*")],
      [["s3:ListBucket"], [`arn:aws:s3:::${bucket}`]],
      [
        [
          "ssm:UpdateInstanceInformation",
          "ssmmessages:CreateControlChannel",
          "ssmmessages:CreateDataChannel",
          "ssmmessages:OpenControlChannel",
          "ssmmessages:OpenDataChannel",
        ],
        ["*"],
      ],
    ]);
    const policy = theResource(graph, "aws:iam/rolePolicy:RolePolicy", "TrainerPolicy").inputs.policy;
    const lists = (JSON.parse(policy).Statement as Statement[]).find(({ Action }) =>
      Action.includes("s3:ListBucket"),
    );
    expect(lists?.Condition).toEqual([{ StringLike: { "s3:prefix": ["jobs/*"] } }]);
    expect(trustedBy(graph, "TrainerRole")).toEqual([{ Service: "ec2.amazonaws.com" }]);
    expect(resourcesOf(graph, "aws:iam/rolePolicyAttachment:RolePolicyAttachment")).toEqual([]);
    expect(JSON.stringify(graph.resources)).not.toContain("iam::aws:policy/");
    const profile = theResource(graph, "aws:iam/instanceProfile:InstanceProfile", "TrainerProfile").inputs;
    expect(profile.role).toBe("code-rewards-ci-trainer");
  }),
  rule(
    "trainer",
    "its key is the first of the callers' keys, in an encrypted parameter and nowhere else",
    (graph) => {
      expect(theResource(graph, "aws:ssm/parameter:Parameter").inputs).toEqual({
        name: "/code-rewards/ci/trainer/api-key",
        type: "SecureString",
        value: "first-key",
      });
      const values = Object.values(secretValues).flatMap((value) => value.split(","));
      const holders = graph.resources.filter(({ inputs }) =>
        values.some((value) => JSON.stringify(inputs).includes(value)),
      );
      expect(holders.map(({ name }) => name).toSorted()).toEqual([
        "E2bApiKeyLinkRef",
        "RewardApiKeysLinkRef",
        "TrainerApiKey",
      ]);
      expect(bootScript(graph)).not.toMatch(/first-key|second-key/);
    },
  ),
  rule("trainer", "it boots the script in the project, with this stage's facts before it", (graph) => {
    expect(facts(graph)).toEqual({
      BUCKET: bucketName,
      API_KEY_PARAMETER: "/code-rewards/ci/trainer/api-key",
      CODE_REWARDS_URL: "https://abc.lambda-url.us-east-1.on.aws/",
      MAX_S: "43200",
      IDLE_S: "1800",
    });
    const script = bootScript(graph);
    expect(script).toMatch(/^#!\/usr\/bin\/env bash\n/);
    expect(script.endsWith(readFileSync(join(projectRoot, "stacks/trainer/boot.sh"), "utf8"))).toBe(true);
    expect(script.length).toBeLessThan(16_000); // what AWS takes
    expect(template(graph).tags["code-rewards-bucket"]).toEqual(bucketName);
  }),
  rule("trainer", "it is made of the trainer's own files, without tests and environments", (graph) => {
    const { bucket, key, source } = theResource(
      graph,
      "aws:s3/bucketObjectv2:BucketObjectv2",
      "TrainerCode",
    ).inputs;
    expect({ bucket, key }).toEqual({ bucket: bucketName, key: "trainer.zip" });
    const sources = readdirSync(join(projectRoot, "trainer/src"), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.[a-z]+$/.test(name) && !name.includes("__pycache__"))
      .map((name) => `src/${name}`);
    expect(Object.keys(source).toSorted()).toEqual(
      ["README.md", "pyproject.toml", "uv.lock", ...sources].toSorted(),
    );
    expect(sources).toContain("src/code_rewards/train/__main__.py");
  }),
  rule(
    "trainer",
    "what it keeps nobody else can read, and none of it goes over the air in clear",
    (graph) => {
      expect(
        theResource(graph, "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock").inputs,
      ).toMatchObject({
        blockPublicAcls: true,
        blockPublicPolicy: true,
        ignorePublicAcls: true,
        restrictPublicBuckets: true,
      });
      const { Statement: statements } = JSON.parse(
        theResource(graph, "aws:s3/bucketPolicy:BucketPolicy").inputs.policy,
      );
      expect(statements).toEqual([
        expect.objectContaining({
          Effect: "Deny",
          Action: ["s3:*"],
          Condition: [{ Bool: { "aws:SecureTransport": ["false"] } }],
        }),
      ]);
      expect(resourcesOf(graph, "aws:s3/bucketCorsConfiguration:BucketCorsConfiguration")).toEqual([]);
    },
  ),
  rule("trainer", "its files go with a stage that is no production", (graph) => {
    const bucket = theResource(graph, "aws:s3/bucket:Bucket");
    expect(bucket.retainOnDelete).toBe(false);
    expect(bucket.inputs.forceDestroy).toBe(true);
  }),
  rule("kept", "production keeps them", (graph) => {
    expect(theResource(graph, "aws:s3/bucket:Bucket").retainOnDelete).toBe(true);
  }),
];
