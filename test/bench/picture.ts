/** A picture of the bench for the README: programs a second, load by load, ours above the recipe's. */
import type { LoadFigures } from "./floors.ts";

const width = 760;
const labelWidth = 190;
const barHeight = 16;
const rowHeight = 52;
const colors = { endpoint: "#2563eb", recipe: "#9ca3af" } as const;

/** One SVG document, readable on light and on dark pages. */
export function drawPicture(figures: ReadonlyMap<string, LoadFigures>): string {
  const compared = [...figures].flatMap(([name, { endpoint, recipe }]) =>
    recipe ? [{ name, endpoint: endpoint.programs_per_second, recipe: recipe.programs_per_second }] : [],
  );
  const rows = compared.map((row, index) => drawRow(row, 44 + index * rowHeight));
  const height = 44 + compared.length * rowHeight + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13">
<title>Programs a second, code-rewards beside the published recipe</title>
<rect width="${width}" height="${height}" rx="8" fill="#ffffff"/>
<text x="16" y="26" font-weight="600" fill="#111827">Programs a second, 2 workers on the same machine</text>
<text x="${width - 16}" y="26" text-anchor="end"><tspan fill="${colors.endpoint}">■ code-rewards</tspan> <tspan fill="${colors.recipe}">■ published recipe</tspan></text>
${rows.join("\n")}
</svg>
`;
}

/** Bars are scaled row by row: loads differ by orders of magnitude, and the ratio is what counts. */
function drawRow(row: { name: string; endpoint: number; recipe: number }, top: number): string {
  const room = width - labelWidth - 130;
  const most = Math.max(row.endpoint, row.recipe);
  const bar = (value: number, y: number, color: string, text: string) =>
    `<rect x="${labelWidth}" y="${y}" width="${((value / most) * room).toFixed(1)}" height="${barHeight}" rx="3" fill="${color}"/>` +
    `<text x="${(labelWidth + (value / most) * room + 8).toFixed(1)}" y="${y + 13}" fill="#111827">${text}</text>`;
  const ratio = (row.endpoint / row.recipe).toFixed(1);
  return [
    `<text x="16" y="${top + 21}" fill="#111827">${row.name}</text>`,
    bar(row.endpoint, top, colors.endpoint, `${format(row.endpoint)}/s (×${ratio})`),
    bar(row.recipe, top + barHeight + 3, colors.recipe, `${format(row.recipe)}/s`),
  ].join("\n");
}

const format = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));
