import { expect, test } from 'vitest';
import { dependentReasons, isAnotherReason, isOwnReason } from '../../../../src/agent/verdict/found.ts';

/** Why a check fails: reasons of the target itself, of what it lacks, and of its end, its start and its silence. */
const own =
  'resolve tls tls_expired tls_untrusted tls_hostname not_in_ring credentials denied database_missing';
const lacking = 'persistence not_ok http_status warming_up';
const absent =
  'refused unreachable reset connect_timeout first_byte_timeout body_timeout too_slow starting shutting_down warming_up';
const alone = ['too_many_connections', 'query_failed', 'clusters_disagree', 'command_failed'];
const [owns, lacks, absents] = [own, lacking, absent].map((text) => text.split(' '));
const all = [...new Set([...owns!, ...lacks!, ...absents!, ...alone])];

test.each(all)('a check that fails for %s, and then for another reason', (first) => {
  const same = all.filter((then) => !isAnotherReason(first, then));
  const groups = owns!.includes(first) ? [] : [lacks!, absents!].filter((group) => group.includes(first));
  expect(new Set(same)).toEqual(new Set([first, ...groups.flat()]));
  expect([isAnotherReason(first), isAnotherReason('', first)]).toEqual(Array(2).fill(owns!.includes(first)));
  expect(isOwnReason(first)).toBe(owns!.includes(first));
  expect(dependentReasons.has(first)).toBe(lacks!.includes(first));
});
