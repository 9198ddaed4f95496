/**
 * What must not become a tag, by name and by value: workflow ids, run ids, timestamps and user ids (spec,
 * Metric cardinality rules; contract, Names and labels).
 */

/** Names that end so: `wf-run-id`, `parentWorkflowID`, `user.id`, `event_timestamp_ms`. */
const idEnding = /(?:workflow|wf|run|execution|user)ids?$/;
const stampEnding = /timestamps?(?:n|u|m|nano|micro|milli)?s?(?:ec|econds?)?$/;
/** Names too short to be looked for inside others: `runtime` and `tests` are fine. */
const wholeNames = new Set(['ts', 'time', 'datetime', 'unixtime', 'epoch', 'uid', 'uids', 'wid', 'rid']);

/** A tag name without case and punctuation: `wf-run-id`, `WfRunID` and `wf_run_id` are one. */
export function foldTag(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** Whether a tag of this name is forbidden; `more` are further names, folded. */
export function isForbiddenTag(name: string, more?: ReadonlySet<string>): boolean {
  const folded = foldTag(name);
  return (
    wholeNames.has(folded) ||
    idEnding.test(folded) ||
    stampEnding.test(folded) ||
    (more?.has(folded) ?? false)
  );
}

const uuid = /[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}/gi;
/** RFC 3339 §5.6, with the space that its note allows for `T`. */
const dateTime =
  /\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[t ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)/gi;
const digitRun = /(?<![\p{L}\p{N}])(?:\d{19}|\d{16}|\d{13}|\d{10})(?![\p{L}\p{N}])/gu;

const firstSecond = Date.UTC(2001, 0, 1) / 1000;
const endSecond = Date.UTC(2101, 0, 1) / 1000;
const shortestMatch = 10;

/** Runs of 10, 13, 16 and 19 digits all begin with ten digits of seconds. */
function hideTime(digits: string): string {
  const seconds = Number(digits.slice(0, 10));
  return seconds >= firstSecond && seconds < endSecond ? '_time_' : digits;
}

/**
 * A received tag value without what would make it unique: `_id_` for a UUID, `_time_` for a date-time or a
 * run of digits that is a time of the years 2001 to 2100. The same string if there is nothing of that kind.
 */
export function cleanValue(value: string): string {
  if (value.length < shortestMatch) return value;
  return value.replace(uuid, '_id_').replace(dateTime, '_time_').replace(digitRun, hideTime);
}
