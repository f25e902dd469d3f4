export function fillPage(page: string, _report: unknown): string {
  return page;
}
