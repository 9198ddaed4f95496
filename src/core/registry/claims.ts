import { type Kind, kinds } from '../model.ts';
import { compareText } from './labels.ts';

/** A raw name and kind that sources send for a family, and how many owners send it. */
interface Claim {
  readonly kind: Kind;
  readonly rawName: string;
  readonly help: string;
  count: number;
}
type Claimant = Omit<Claim, 'count'>;
type Claimed = Omit<Claimant, 'help'>;

/**
 * The claims on a family. The winner is the claim of the catalog's kind, or else the claim with the smallest raw name, or else
 * the first claim in the order of `kinds` (docs/internals.md, Admission). It depends on which claims there are, never on their
 * order of arrival.
 *
 * It is a record, because a family has its claims for as long as it exists, and nearly all families have one claim.
 */
export interface Claims {
  readonly catalogKind: Kind | undefined;
  /** The only claim; undefined if there are several. */
  only: Claim | undefined;
  rivals: Rivals | undefined;
}

export const createClaims = (catalogKind: Kind | undefined): Claims => ({
  catalogKind,
  only: undefined,
  rivals: undefined,
});

const isClaimOf = (claim: Claim, { kind, rawName }: Claimed): boolean =>
  claim.kind === kind && claim.rawName === rawName;

export const hasClaims = ({ only, rivals }: Claims): boolean => only !== undefined || (rivals?.size ?? 0) > 0;

export function addClaim(claims: Claims, { kind, rawName, help }: Claimant): void {
  const { only } = claims;
  const claim = { kind, rawName, help, count: 1 };
  if (claims.rivals) claims.rivals.add(claim);
  else if (!only) claims.only = claim;
  else if (isClaimOf(only, claim)) only.count += 1;
  else {
    claims.rivals = createRivals(claims.catalogKind);
    claims.rivals.add(only);
    claims.rivals.add(claim);
    claims.only = undefined;
  }
}

export function removeClaim(claims: Claims, claimed: Claimed): void {
  const { only } = claims;
  claims.rivals?.remove(claimed);
  if (!only || !isClaimOf(only, claimed)) return;
  only.count -= 1;
  if (only.count === 0) claims.only = undefined;
}

export const winnerOf = ({ only, rivals }: Claims): Claim | undefined => only ?? rivals?.winner();

/** Whether there are claims of more than one kind. */
export const areConflicting = ({ rivals }: Claims): boolean => (rivals?.kinds() ?? 0) > 1;

export function allClaims({ only, rivals }: Claims): Iterable<Claim> {
  return only ? [only] : (rivals?.all() ?? []);
}

/**
 * Several claims. A heap with lazy deletion finds the winner: each change costs O(log n), so that 16,000 raw names with the same
 * sanitized name cost linear time.
 */
interface Rivals {
  readonly size: number;
  /** Counts one more owner of an existing claim. */
  add(claim: Claim): void;
  remove(claimed: Claimed): void;
  winner(): Claim | undefined;
  kinds(): number;
  all(): Iterable<Claim>;
}

function createRivals(catalogKind: Kind | undefined): Rivals {
  const claims = new Map<string, Claim>();
  const perKind = new Map<Kind, number>();
  let heap: Claim[] = [];

  const isBefore = (a: Claim, b: Claim): boolean =>
    (Number(b.kind === catalogKind) - Number(a.kind === catalogKind) ||
      compareText(a.rawName, b.rawName) ||
      kinds.indexOf(a.kind) - kinds.indexOf(b.kind)) < 0;

  const push = (claim: Claim) => {
    let at = heap.push(claim) - 1;
    for (let up = (at - 1) >> 1; at > 0 && isBefore(claim, heap[up]!); up = (at - 1) >> 1) {
      heap[at] = heap[up]!;
      at = up;
    }
    heap[at] = claim;
  };
  const dropTop = () => {
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (child >= heap.length || !isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  };
  const countKind = (kind: Kind, by: 1 | -1) => {
    const left = (perKind.get(kind) ?? 0) + by;
    if (left > 0) perKind.set(kind, left);
    else perKind.delete(kind);
  };

  return {
    get size() {
      return claims.size;
    },
    add(claim) {
      const key = `${claim.kind} ${claim.rawName}`;
      const known = claims.get(key);
      if (known) {
        known.count += claim.count;
        return;
      }
      claims.set(key, claim);
      countKind(claim.kind, 1);
      push(claim);
    },
    remove({ kind, rawName }) {
      const key = `${kind} ${rawName}`;
      const claim = claims.get(key);
      if (!claim) return;
      claim.count -= 1;
      if (claim.count > 0) return;
      claims.delete(key);
      countKind(kind, -1);
      // Claims that come and go below the top would otherwise stay in the heap for ever.
      if (heap.length < claims.size * 2 + 64) return;
      heap = [];
      for (const left of claims.values()) push(left);
    },
    winner() {
      while (heap.length > 0 && heap[0]!.count === 0) dropTop();
      return heap[0];
    },
    kinds: () => perKind.size,
    all: () => claims.values(),
  };
}
