import { oneOf, usageError } from '../core/errors.ts';
import { redactedMessage } from '../core/redacted.ts';
import { parseDuration, webAddress } from '../core/text-formats.ts';
import { type Alert, type Pack, type PackName, packNames } from './alert.ts';
import { type Job, jobs } from './names.ts';
import { alertsOf, type RuleOptions } from './packs.ts';

/** Options of the command line: lists of `NAME=VALUE`. */
interface WrittenOptions {
  job: readonly string[];
  label: readonly string[];
  threshold: readonly string[];
  for: readonly string[];
  prefix: string;
  runbookUrl: string;
  dashboardUrl: string;
}

/** Labels that the rules set. */
const ownLabels = ['alertname', 'severity', 'pack', 'window'];
const labelName = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function packNamed(word: string): PackName {
  return oneOf('--pack', word, packNames, 'pack');
}

function pairs(where: string, written: readonly string[]): (readonly [name: string, value: string])[] {
  return written.map((text) => {
    const at = text.indexOf('=');
    if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
    throw usageError(where, 'not NAME=VALUE', text, `write ${where} NAME=VALUE`);
  });
}

/** Checks the options against the alerts of the packs. Throws `usage` at the first fault. */
export function chosen(written: WrittenOptions, packs: readonly Pack[]): RuleOptions {
  const alerts = packs.flatMap(alertsOf);
  return {
    jobs: Object.fromEntries(
      pairs('--job', written.job).map(([job, name]) => [jobNamed(job), nonEmpty('--job', name)]),
    ),
    labels: Object.fromEntries(
      pairs('--label', written.label).map(([label, value]) => [labelNamed(label), value]),
    ),
    thresholds: Object.fromEntries(
      pairs('--threshold', written.threshold).map(([name, value]) => [
        alertNamed('--threshold', name, alerts),
        thresholdOf(value),
      ]),
    ),
    fors: Object.fromEntries(
      pairs('--for', written.for).map(([name, value]) => [alertNamed('--for', name, alerts), timeOf(value)]),
    ),
    prefix: prefixOf(written.prefix),
    runbookUrl: linkOf('--runbook-url', written.runbookUrl, 'https://wiki.example.com/runbooks'),
    dashboardUrl: linkOf('--dashboard-url', written.dashboardUrl, 'https://grafana.example.com'),
  };
}

const jobNamed = (word: string): Job => oneOf('--job', word, jobs, 'role');

/** The address that links begin with, without a slash at the end; empty if there are no links. */
function linkOf(where: string, written: string, example: string): string {
  const format = webAddress(['http', 'https'], example);
  if (written !== '' && format.read(written) === undefined) {
    const [what = '', allowed] = format.fault.split('; ');
    throw usageError(where, what, redactedMessage(written), allowed);
  }
  return written.replace(/\/+$/, '');
}

function nonEmpty(where: string, value: string): string {
  if (value) return value;
  throw usageError(where, 'empty', value, 'name the scrape job');
}

function labelNamed(label: string): string {
  if (!labelName.test(label))
    throw usageError('--label', 'not a label name', label, 'use letters, digits and _');
  if (ownLabels.includes(label)) throw usageError('--label', 'set by the rules', label, 'use another name');
  return label;
}

function alertNamed(where: '--threshold' | '--for', word: string, alerts: readonly Alert[]): string {
  const tunable = alerts.filter(({ threshold }) => where === '--for' || threshold !== undefined);
  if (
    where === '--threshold' &&
    alerts.some(({ name }) => name === word) &&
    !tunable.some(({ name }) => name === word)
  )
    throw usageError(
      where,
      'the alert has no threshold',
      word,
      'use --for to change how long its state must last',
    );
  return oneOf(where, word, [...new Set(tunable.map(({ name }) => name))], 'alert of these packs');
}

function thresholdOf(value: string): number {
  const number = Number(value);
  if (value.trim() !== '' && Number.isFinite(number)) return number;
  throw usageError('--threshold', 'not a number', value, 'use a number in the unit of the alert');
}

/** A time for Prometheus, which accepts only whole numbers with units; 0 means at once. */
function timeOf(value: string): string {
  if (/^(?:\d+(?:ms|[smhdw]))+$/.test(value)) return parseDuration(value) === 0 ? '' : value;
  throw usageError(
    '--for',
    'not a duration',
    value,
    'use whole numbers with units, such as 30s, 5m or 1h30m',
  );
}

function prefixOf(prefix: string): string {
  if (prefix === '' || labelName.test(prefix)) return prefix;
  throw usageError(
    '--prefix',
    'not a prefix of a metric name',
    prefix,
    'use letters, digits and _; a digit cannot come first',
  );
}
