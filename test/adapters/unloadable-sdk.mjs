// A loader in which the package e2b doesn't exist: what works under it doesn't need the package.
export async function resolve(specifier, context, nextResolve) {
  if (specifier === "e2b" || /node_modules\/e2b\//.test(specifier)) {
    throw Object.assign(new Error(`${specifier} is out of reach`), { code: "ERR_MODULE_NOT_FOUND" });
  }
  return nextResolve(specifier, context);
}
