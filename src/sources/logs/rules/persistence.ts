import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Counter, Intake } from '../../../core/model.ts';
import { escapedText, type Fields, plainText, type Slots, textOf, viewOf } from '../lines/fields.ts';
import { createPattern, isPatternAt } from '../lines/pattern.ts';
import { createLabelCache, findIn, keepIn } from './label-cache.ts';
import { operationOf } from './operations.ts';

const messages = [
  'Operation failed with internal error.',
  'DBUnavailable Error:',
  'Persistent store operation failure',
  'Persistent fetch operation failure',
].map((text) => createPattern(Buffer.from(text)));
const phrase = Buffer.from('persistence error');

const foldCase = (byte: number) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte);

/** Whether `phrase` stands in `bytes[from, to)` in any case. */
function hasPhrase(bytes: Buffer, from: number, to: number): boolean {
  const last = to - phrase.length;
  for (let at = from; at <= last; at++) {
    let i = 0;
    while (i < phrase.length && foldCase(bytes[at + i]!) === phrase[i]) i++;
    if (i === phrase.length) return true;
  }
  return false;
}

function isMessage(view: DataView, from: number, to: number): boolean {
  for (const text of messages) if (text.length === to - from && isPatternAt(text, view, from)) return true;
  return false;
}

/** Whether the entry's `msg` says that the store failed (contract, Logs). */
function saysPersistenceError(fields: Fields, msg: number): boolean {
  const from = fields.from[msg]!;
  const to = fields.to[msg]!;
  if (fields.kind[msg] === plainText) {
    return isMessage(fields.view, from, to) || hasPhrase(fields.bytes, from, to);
  }
  if (fields.kind[msg] !== escapedText) return false;
  const text = Buffer.from(textOf(fields, msg) as string);
  return isMessage(viewOf(text), 0, text.length) || hasPhrase(text, 0, text.length);
}

/** Counts `svc_log_persistence_errors_total` of one service. */
export interface PersistenceErrors {
  /** To be asked for entries of level error and fatal only. */
  count(fields: Fields): void;
}

export const persistenceFields = ['msg', 'operation', 'store-operation'] as const;
export const persistenceFamily = agentMetric('svc_log_persistence_errors_total');

export function createPersistenceErrors(intake: Intake, slots: Slots): PersistenceErrors {
  const [msg, ...operations] = persistenceFields.map((name) => slots.of(name)) as [number, ...number[]];
  const counters = createLabelCache<Counter>(operations);
  const { name, help } = persistenceFamily;
  intake.counter(name, {}, { help });

  const open = (fields: Fields): Counter => {
    const logged = operations.map((slot) => textOf(fields, slot)).find((text) => text);
    return intake.counter(name, logged ? { operation: operationOf(logged) } : {}, { help });
  };
  return {
    count(fields) {
      if (!saysPersistenceError(fields, msg)) return;
      const known = findIn(counters, fields);
      const counter = known ?? open(fields);
      counter.add(1);
      if (!known && !keepIn(counters, fields, counter)) counter.release();
    },
  };
}
