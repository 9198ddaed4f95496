import { bucketBounds, type Family, type Series, type Tags } from './metrics.ts';

export const contentType = 'text/plain; version=0.0.4; charset=utf-8';

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function labels(tags: Tags): string {
  const pairs = Object.entries(tags).map(
    ([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (char) => escapes[char] ?? char)}"`,
  );
  return `{${pairs.join(',')}}`;
}

function histogramLines(name: string, { tags, numbers }: Series): string[] {
  const count = numbers[bucketBounds.length];
  return [
    ...bucketBounds.map(
      (bound, part) => `${name}_bucket${labels({ ...tags, le: String(bound) })} ${numbers[part]}`,
    ),
    `${name}_bucket${labels({ ...tags, le: '+Inf' })} ${count}`,
    `${name}_sum${labels(tags)} ${numbers[bucketBounds.length + 1]}`,
    `${name}_count${labels(tags)} ${count}`,
  ];
}

/**
 * A page in the text exposition format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Families without series are left out.
 */
export function exposition(families: readonly Family[]): string {
  const lines: string[] = [];
  for (const { metric, series } of families) {
    const all = [...series];
    if (all.length === 0) continue;
    lines.push(`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.kind}`);
    for (const one of all) {
      if (metric.kind === 'histogram') lines.push(...histogramLines(metric.name, one));
      else lines.push(`${metric.name}${labels(one.tags)} ${one.numbers[0]}`);
    }
  }
  return `${lines.join('\n')}\n`;
}
