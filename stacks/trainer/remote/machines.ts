/** The machines of a stage's launch template. */
import {
  DescribeInstancesCommand,
  DescribeLaunchTemplatesCommand,
  DescribeLaunchTemplateVersionsCommand,
  DescribeSpotPriceHistoryCommand,
  type EC2Client,
  EC2ServiceException,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import type { MachinePlan } from "./cost.ts";

export interface TrainerTemplate extends MachinePlan {
  readonly name: string;
  readonly bucket: string;
}

export interface Machines {
  /** Undefined when the stage has no trainer. */
  readTemplate(): Promise<TrainerTemplate | undefined>;
  /** Of that job, in any state but gone. */
  findAlive(job: string): Promise<string[]>;
  start(template: TrainerTemplate, job: string): Promise<string>;
  isAlive(machine: string): Promise<boolean>;
  end(machines: readonly string[]): Promise<void>;
  /** Dollars an hour, the cheapest zone's; undefined when AWS does not say. */
  readSpotPrice(instanceType: string): Promise<number | undefined>;
}

const alive = ["pending", "running", "stopping", "shutting-down"];

export function openMachines(ec2: EC2Client, app: string, stage: string): Machines {
  const name = `${app}-${stage}-trainer`;
  return {
    readTemplate: () => readTemplate(ec2, name),
    async findAlive(job) {
      const filters = [
        { Name: "tag:code-rewards-job", Values: [job] },
        { Name: "tag:code-rewards-stage", Values: [stage] },
        { Name: "instance-state-name", Values: alive },
      ];
      const { Reservations: found = [] } = await ec2.send(new DescribeInstancesCommand({ Filters: filters }));
      return found.flatMap(({ Instances = [] }) => Instances.flatMap(({ InstanceId: id }) => id ?? []));
    },
    start: (template, job) => start(ec2, template, stage, job),
    async isAlive(machine) {
      try {
        const { Reservations: found = [] } = await ec2.send(
          new DescribeInstancesCommand({ InstanceIds: [machine] }),
        );
        return alive.includes(found[0]?.Instances?.[0]?.State?.Name ?? "");
      } catch (error) {
        // Not known yet, moments after its start, or any more.
        if (isNamed(error, "InvalidInstanceID.NotFound")) return false;
        throw error;
      }
    },
    async end(machines) {
      await ec2.send(new TerminateInstancesCommand({ InstanceIds: [...machines] }));
    },
    async readSpotPrice(instanceType) {
      const { SpotPriceHistory: prices = [] } = await ec2.send(
        new DescribeSpotPriceHistoryCommand({
          InstanceTypes: [instanceType as never],
          ProductDescriptions: ["Linux/UNIX"],
          StartTime: new Date(),
        }),
      );
      const known = prices.map(({ SpotPrice: price }) => Number(price)).filter((price) => price > 0);
      return known.length === 0 ? undefined : Math.min(...known);
    },
  };
}

async function readTemplate(ec2: EC2Client, name: string): Promise<TrainerTemplate | undefined> {
  try {
    const { LaunchTemplates: found = [] } = await ec2.send(
      new DescribeLaunchTemplatesCommand({ LaunchTemplateNames: [name] }),
    );
    const { LaunchTemplateVersions: versions = [] } = await ec2.send(
      new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateName: name, Versions: ["$Default"] }),
    );
    const tags = new Map(found[0]?.Tags?.map(({ Key, Value }) => [Key ?? "", Value ?? ""]));
    const data = versions[0]?.LaunchTemplateData;
    return {
      name,
      bucket: tags.get("code-rewards-bucket") ?? "",
      maxHours: Number(tags.get("code-rewards-max-hours")),
      diskGib: Number(tags.get("code-rewards-disk-gib")),
      instanceType: data?.InstanceType ?? "",
      spot: data?.InstanceMarketOptions?.MarketType === "spot",
    };
  } catch (error) {
    if (isNamed(error, "InvalidLaunchTemplateName.NotFoundException")) return undefined;
    throw error;
  }
}

async function start(ec2: EC2Client, template: TrainerTemplate, stage: string, job: string): Promise<string> {
  const tags = Object.entries({
    Name: `${template.name}: ${job}`,
    "code-rewards-job": job,
    "code-rewards-stage": stage,
  }).map(([Key, Value]) => ({ Key, Value }));
  const { Instances: [machine] = [] } = await ec2.send(
    new RunInstancesCommand({
      LaunchTemplate: { LaunchTemplateName: template.name, Version: "$Default" },
      MinCount: 1,
      MaxCount: 1,
      TagSpecifications: [
        { ResourceType: "instance", Tags: tags },
        { ResourceType: "volume", Tags: tags },
      ],
    }),
  );
  if (machine?.InstanceId === undefined) throw new Error("AWS started no machine, and did not say why");
  return machine.InstanceId;
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof EC2ServiceException && error.name === name;
}
