/**
 * The increase of a counter over a span, births included. A relayed counter appears with its first event, so
 * that `increase()` alone never sees a first burst. What a series had at its birth counts if the same process
 * was already there a span ago, as `witness` shows; else it is a new target or a gap in scraping, whose old
 * total is no news.
 */
export function increaseWithBirths(counter: string, witness: string, span: string): string {
  const increase = `increase(${counter}[${span}])`;
  const born = `(min_over_time(${counter}[${span}]) unless ${counter} offset ${span})`;
  const known = `${born} and on (cluster, svc_service, instance) ${witness} offset ${span}`;
  return `${increase} + (${known}) or ${increase}`;
}
