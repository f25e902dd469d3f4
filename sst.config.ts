/// <reference path="./.sst/platform/config.d.ts" />

export default $config({
  async app(input) {
    const { isProduction } = await import("./stacks/config.ts");
    const keep = isProduction(input?.stage ?? "");
    return {
      name: "code-rewards",
      home: "aws",
      version: "~4.17.1",
      removal: keep ? "retain" : "remove",
      protect: keep,
    };
  },
  async run() {
    const { endpoint } = await import("./stacks/endpoint.ts");
    const { table } = await import("./stacks/table.ts");
    await import("./stacks/cleanup.ts");
    await import("./stacks/alarms.ts");
    const { trainer } = await import("./stacks/trainer.ts");
    return {
      url: endpoint.url,
      table: table.name,
      ...(trainer && { trainer: trainer.template.name, training: trainer.bucket.name }),
    };
  },
});
