import { fieldProperty, type PanelJson, type StepJson, type TargetJson } from '../../tools/grafana.ts';
import type { Answered } from '../simulated/queries.ts';

/** One query of a panel with its answer. */
export interface Shown {
  target: TargetJson;
  series: readonly Answered[];
}

/** What a drawer gets: the panel, its answers, the size in pixels and the shown time. */
export interface Canvas {
  panel: PanelJson;
  shown: readonly Shown[];
  width: number;
  height: number;
  from: number;
  to: number;
}

export const palette = [
  ...['#73bf69', '#f2cc0c', '#8ab8ff', '#ff780a', '#f2495c', '#5794f2', '#b877d9', '#705da0'],
  ...['#37872d', '#fade2a', '#447ebc', '#c15c17', '#890f02', '#0a437c', '#6d1f62', '#584477'],
];
export const colours: Readonly<Record<string, string>> = {
  green: '#56a64b',
  red: '#e02f44',
  orange: '#ff780a',
  blue: '#3274d9',
  text: '#9fa7b3',
};

/** What stands in the legend for a series. */
export const nameOf = ({ legendFormat = '' }: TargetJson, { metric }: Answered): string =>
  legendFormat
    .replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '')
    .replace(/\s+/g, ' ')
    .trim();

/** The steps that colour the values of a query. */
export const stepsOf = (panel: PanelJson, target: TargetJson): readonly StepJson[] =>
  (fieldProperty(panel, target, 'thresholds') as { steps: readonly StepJson[] } | undefined)?.steps ?? [];

/** What a value looks like by the mappings and the steps. */
export function appearanceOf(
  panel: PanelJson,
  target: TargetJson,
  value: number,
): { text?: string; colour: string } {
  const maps = (fieldProperty(panel, target, 'mappings') ?? []) as readonly {
    options: Record<string, { text: string; color: string }>;
  }[];
  const mapped = maps[0]?.options[String(value)];
  if (mapped) return { text: mapped.text, colour: colours[mapped.color] ?? mapped.color };
  const step = [...stepsOf(panel, target)]
    .reverse()
    .find(({ value: least }) => least === null || value >= least);
  return { colour: colours[step?.color ?? 'text']! };
}

export const unitOf = (panel: PanelJson, target: TargetJson): string =>
  String(fieldProperty(panel, target, 'unit') ?? 'short');
