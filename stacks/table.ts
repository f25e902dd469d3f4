/** The pool's table: slots, runs, batches. Nothing of a caller's programs or tasks is in it. */
import { isProduction } from "./config.ts";

export const table = new sst.aws.Dynamo("Pool", {
  fields: { pk: "string", sk: "string" },
  primaryIndex: { hashKey: "pk", rangeKey: "sk" },
  ttl: "expiresAtS",
  deletionProtection: isProduction($app.stage),
});

/** The calls that the table's adapter makes, and no other: a link would allow all there are. */
export const tablePermission = {
  actions: ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
  resources: [table.arn],
};
