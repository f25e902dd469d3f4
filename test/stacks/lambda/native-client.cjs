/**
 * Lets AWS's runtime interface client run without its compiled part: the same calls, over Node's own HTTP client. To be
 * loaded before it, with `--require`.
 */
const Module = require("node:module");
const http = require("node:http");

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");

function post(id, kind, body, headers = {}) {
  const request = http.request({
    host,
    port,
    method: "POST",
    path: `/2018-06-01/runtime/invocation/${id}/${kind}`,
    headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers },
  });
  request.on("response", (response) => response.resume());
  request.end(body);
}

const client = {
  done: (id, body) => post(id, "response", body),
  error: (id, body, cause) => post(id, "error", body, { "lambda-runtime-function-xray-error-cause": cause }),
};

process.env.AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1 = "true"; // it asks for the next event by itself then
const load = Module._load;
Module._load = function loadOrStandIn(request, ...rest) {
  return request === "./rapid-client.node" ? client : load.call(this, request, ...rest);
};
