/** The launch template that a deployment would make, made in the stand-in for AWS. */
import { CreateLaunchTemplateCommand, type EC2Client } from "@aws-sdk/client-ec2";
import type { Graph } from "../graph.ts";
import { theResource } from "../reading.ts";

/** Pulumi's words are EC2's own with a small letter at the front; what names other resources is left out. */
export async function makeTemplate(ec2: EC2Client, graph: Graph, bucket: string): Promise<void> {
  const { inputs } = theResource(graph, "aws:ec2/launchTemplate:LaunchTemplate", "Trainer");
  const {
    name,
    tags,
    updateDefaultVersion: _,
    iamInstanceProfile: __,
    vpcSecurityGroupIds: ___,
    ...data
  } = inputs;
  const own = Object.entries({ ...tags, "code-rewards-bucket": bucket });
  await ec2.send(
    new CreateLaunchTemplateCommand({
      LaunchTemplateName: name,
      LaunchTemplateData: capitalize(data) as Record<string, string>,
      TagSpecifications: [
        {
          ResourceType: "launch-template",
          Tags: own.map(([Key, Value]) => ({ Key, Value: String(Value) })),
        },
      ],
    }),
  );
}

function capitalize(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(capitalize);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.charAt(0).toUpperCase() + name.slice(1),
      capitalize(inner),
    ]),
  );
}
