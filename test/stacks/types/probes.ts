/** Mistakes that the platform's types must refuse: were they not seen, each of these lines would be an error. */

// @ts-expect-error: no such property
new sst.aws.CronV2("A", { schedule: "rate(1 minute)", function: "a.handler", deadLetters: "x" });
// @ts-expect-error: no such schedule
new sst.aws.CronV2("B", { schedule: "every minute", function: "a.handler" });
// @ts-expect-error: no such unit
new sst.aws.Function("C", { handler: "a.handler", timeout: "15 mins" });
// @ts-expect-error: no such runtime
new sst.aws.Function("D", { handler: "a.handler", runtime: "nodejs19.x" });
// @ts-expect-error: no such way to authorize
new sst.aws.Function("E", { handler: "a.handler", url: { authorization: "bearer" } });
// @ts-expect-error: a hash key is needed
new sst.aws.Dynamo("F", { fields: { pk: "string" }, primaryIndex: {} });
// @ts-expect-error: a setting of another name
new aws.ec2.LaunchTemplate("G", { metadataOptions: { httpToken: "required" } });
// @ts-expect-error: a stage is a string
export const stage: number = $app.stage;
