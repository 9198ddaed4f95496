import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Counter, Intake } from '../../../core/model.ts';
import { logLevels } from '../../../core/reasons.ts';
import { type Fields, type Slots, textOf } from '../lines/fields.ts';
import { createLabelCache, findIn, keepIn } from './label-cache.ts';

/** Counts `svc_log_entries_total` of one service. */
export interface Entries {
  /** Returns whether the entry's level is error or fatal. */
  count(fields: Fields): boolean;
}

interface Known {
  counter: Counter;
  isSerious: boolean;
}

const serious: readonly string[] = ['error', 'fatal'];
const levels: readonly string[] = logLevels;

export const entriesFamily = agentMetric('svc_log_entries_total');

/** The level as a label: one of the spec's five or `other`; undefined for a missing one. */
function levelLabel(text: string | undefined): string | undefined {
  if (!text) return undefined;
  return levels.includes(text) ? text : 'other';
}

/** Error and fatal without a logger exist at 0, so that a rate over them sees the first one. */
export function createEntries(intake: Intake, slots: Slots, levelKey: string): Entries {
  const level = slots.of(levelKey);
  const logger = slots.of('logger');
  const known = createLabelCache<Known>([level, logger]);
  const { name, help } = entriesFamily;
  for (const text of serious) intake.counter(name, { level: text }, { help });

  const open = (fields: Fields): Known => {
    const tags: Record<string, string> = {};
    const levelText = levelLabel(textOf(fields, level));
    if (levelText) tags.level = levelText;
    const loggerText = textOf(fields, logger);
    if (loggerText) tags.logger = loggerText;
    return {
      counter: intake.counter(name, tags, { help }),
      isSerious: levelText !== undefined && serious.includes(levelText),
    };
  };
  return {
    count(fields) {
      const found = findIn(known, fields);
      if (found !== undefined) {
        found.counter.add(1);
        return found.isSerious;
      }
      const opened = open(fields);
      opened.counter.add(1);
      if (!keepIn(known, fields, opened)) opened.counter.release();
      return opened.isSerious;
    },
  };
}
