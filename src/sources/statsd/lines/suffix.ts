import { catalog } from '../../../core/catalog.ts';

/** A name with the tags that were written into it. */
export interface Tagged {
  name: string;
  tags: Map<string, string>;
}

/** Tag names that products of this kind use beside the catalog's (reference list: their metric definitions). */
const productTags = [
  'active_cluster',
  'activityType',
  'cache_type',
  'cadence_role',
  'cadence_service',
  'caller',
  'cluster_group',
  'decisionType',
  'domain',
  'domain_type',
  'histogram_end',
  'histogram_scale',
  'histogram_start',
  'host',
  'instance',
  'is_retry',
  'isolation_group',
  'namespace',
  'operation',
  'service_name',
  'service_role',
  'shard_id',
  'source_cluster',
  'stats_type',
  'svc_service',
  'target_cluster',
  'task_category',
  'taskqueue',
  'tasklist',
  'tasklistType',
  'transport',
  'type',
  'workflowType',
];

/** The tag names by which the suffix form is taken apart. */
export function tagKeysWith(more: readonly string[] = []): ReadonlySet<string> {
  return new Set([...catalog.flatMap(({ tags }) => tags), ...productTags, ...more]);
}

/**
 * Takes `name.key.value.key.value` apart, the form of the service's enhanced reporter: tags in the order of
 * their names, nothing escaped. A part is a key if it is known, comes behind the last one in that order, and
 * has something behind it; what is no key belongs to the value in front, dots included. Undefined if no tag
 * is found. Not to be told apart: a metric name that has a known key for one of its middle parts.
 */
export function untangle(text: string, keys: ReadonlySet<string>): Tagged | undefined {
  const parts = text.split('.');
  const tags = new Map<string, string>();
  const keyAt = (i: number, behind: string) =>
    i < parts.length - 1 && parts[i]! > behind && keys.has(parts[i]!) ? parts[i] : undefined;
  let i = 1;
  while (i < parts.length && keyAt(i, '') === undefined) i++;
  const name = parts.slice(0, i).join('.');
  for (let key = keyAt(i, ''); key !== undefined; key = keyAt(i, key)) {
    const from = ++i;
    do i++;
    while (i < parts.length && keyAt(i, key) === undefined);
    tags.set(key, parts.slice(from, i).join('.'));
  }
  return tags.size === 0 || name === '' ? undefined : { name, tags };
}

const duration = '-?(?:\\d+(?:\\.\\d+)?(?:ns|us|µs|ms|s|m|h))+';
const bound = `(?:-?infinity|-?\\d+\\.\\d{6}|${duration})`;
const bucketEnding = new RegExp(`^(.+?)\\.(${bound}-${bound})$`, 'u');

/**
 * The bucket that the service's own reporter writes behind name and tags (`N.1ms-5ms:3|c`, one counter for
 * each bucket of a histogram), cut off. Undefined if there is none.
 */
export function bucketOf(text: string): { rest: string; bucket: string } | undefined {
  const [, rest, bucket] = bucketEnding.exec(text) ?? [];
  return rest === undefined || bucket === undefined ? undefined : { rest, bucket };
}
