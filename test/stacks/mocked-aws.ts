/**
 * What AWS would answer, as far as the stacks ask: ids, ARNs and names of new resources, and the few look-ups.
 *
 * A look-up that is not known here is an error, not a guess.
 */
const region = "us-east-1";
const account = "123456789012";

type Inputs = Readonly<Record<string, unknown>>;
type State = Record<string, unknown>;

/** ARNs and the like, by type; policies refer to them. */
const computed: Readonly<Record<string, (name: string, inputs: Inputs) => State>> = {
  "aws:dynamodb/table:Table": (name) => ({ arn: `arn:aws:dynamodb:${region}:${account}:table/${name}` }),
  "aws:lambda/function:Function": (name) => ({
    arn: `arn:aws:lambda:${region}:${account}:function:${name}`,
    publish: false,
  }),
  "aws:lambda/functionUrl:FunctionUrl": () => ({ functionUrl: "https://abc.lambda-url.us-east-1.on.aws/" }),
  "aws:iam/role:Role": (name) => ({ arn: `arn:aws:iam::${account}:role/${name}` }),
  "aws:iam/instanceProfile:InstanceProfile": (name) => ({
    arn: `arn:aws:iam::${account}:instance-profile/${name}`,
  }),
  "aws:cloudwatch/logGroup:LogGroup": (name) => ({
    arn: `arn:aws:logs:${region}:${account}:log-group:${name}`,
  }),
  "aws:sqs/queue:Queue": (name) => ({ arn: `arn:aws:sqs:${region}:${account}:${name}` }),
  "aws:sns/topic:Topic": (name) => ({ arn: `arn:aws:sns:${region}:${account}:${name}` }),
  "aws:s3/bucket:Bucket": (name) => ({ arn: `arn:aws:s3:::${name}` }),
  "aws:ssm/parameter:Parameter": (name) => ({
    arn: `arn:aws:ssm:${region}:${account}:parameter${name}`,
  }),
  "aws:ec2/launchTemplate:LaunchTemplate": () => ({ latestVersion: 1 }),
  "random:index/randomBytes:RandomBytes": () => ({ base64: Buffer.alloc(32, 7).toString("base64") }),
};

export function mockState(type: string, name: string, inputs: Inputs): { id: string; state: State } {
  const given = [inputs.name, inputs.bucket, name].find((text) => typeof text === "string") as string;
  return { id: `${given}-id`, state: { name: given, ...inputs, ...computed[type]?.(given, inputs) } };
}

const answers: Readonly<Record<string, (inputs: Inputs) => State>> = {
  "aws:index/getRegion:getRegion": () => ({ region, name: region, id: region }),
  "aws:index/getPartition:getPartition": () => ({ partition: "aws", dnsSuffix: "amazonaws.com" }),
  "aws:index/getCallerIdentity:getCallerIdentity": () => ({ accountId: account }),
  "aws:iam/getPolicyDocument:getPolicyDocument": (inputs) => ({
    ...inputs,
    json: JSON.stringify(toPolicy((inputs.statements ?? []) as Statement[])),
  }),
  "aws:ec2/getVpc:getVpc": () => ({ id: "vpc-default" }),
  "aws:ssm/getParameter:getParameter": ({ name }) => ({ value: `resolve:${String(name)}` }),
};

export function mockCall(token: string, inputs: Inputs): State {
  const answer = answers[token];
  if (answer === undefined) throw new Error(`this test knows no answer to ${token}`);
  return answer(inputs);
}

interface Statement {
  readonly sid?: string;
  readonly effect?: string;
  readonly actions?: readonly string[];
  readonly resources?: readonly string[];
  readonly principals?: readonly { readonly type: string; readonly identifiers: readonly string[] }[];
  readonly conditions?: readonly {
    readonly test: string;
    readonly variable: string;
    readonly values: readonly string[];
  }[];
}

function toPolicy(statements: readonly Statement[]) {
  return {
    Version: "2012-10-17",
    Statement: statements.map(({ effect = "Allow", actions, resources, principals, conditions }) => ({
      Effect: effect,
      Action: actions,
      Resource: resources,
      ...(principals && { Principal: Object.fromEntries(principals.map((p) => [p.type, p.identifiers])) }),
      ...(conditions && {
        Condition: conditions.map(({ test, variable, values }) => ({ [test]: { [variable]: values } })),
      }),
    })),
  };
}
