import { hashLabel, hashLabels, hashText } from '../hashes.ts';
import type { RefusalReason } from '../reasons.ts';
import { isOverflowFull, isSummable, isTaken, overLimit } from './admission.ts';
import type { Handle } from './handles.ts';
import type { TagFault } from './labels.ts';
import type { Family, RegistryState, SeriesSpec } from './registry-state.ts';
import { hashesOf } from './series-opening.ts';
import { sameLayout } from './value-stores.ts';

/** A series that is not opened, with its name and labels determined. */
export interface UnopenedSeries {
  readonly spec: SeriesSpec;
  /** Why such a series is impossible, whatever other series there are. */
  readonly unfit: RefusalReason | 'left_out' | undefined;
  readonly faults: readonly TagFault[];
  readonly also: SeriesSpec | undefined;
}

/** Series that differ only in the values of their tags. Over a limit, one series counts for all of them. */
export interface OverLimitForm {
  /** The series that counts for them: see `OpenIntake.overLimitAs`. */
  readonly target: Handle | 'refused';
  /**
   * Whether the series with these values is over the limit; then the refusal is counted. `hashes` has the `hashText` of each
   * value, in the order in which the form was requested. False does not mean that the series is within the limit: call
   * `overLimitAs` then.
   */
  takes(hashes: Int32Array): boolean;
}

/** Whether the caller has a series for this target; otherwise it opens the line's own series, which counts the refusal. */
export type Accepts = (target: Handle | 'refused') => boolean;

/** Decides about series over a limit without opening them: for sources that receive ever new series. */
interface OverLimit {
  /**
   * Decides about a series, and counts the refusal. Undefined if only opening the series can decide, or if the caller does not
   * accept the target.
   */
  decide(candidate: UnopenedSeries, accepts: Accepts): Handle | 'refused' | undefined;
  /**
   * The form of a candidate whose tags have these texts as values, each of which stands for any value. Undefined if the labels do
   * not follow from the values one by one.
   */
  formOf(
    candidate: UnopenedSeries,
    placeholders: readonly string[],
    mayRefuse: boolean,
  ): OverLimitForm | undefined;
  /** Remembers the handle of an overflow series, which is the target of series like it from then on. */
  remember(overflow: Handle): void;
  /** Forgets a handle that ended, of an overflow series or of another series. */
  forget(handle: Handle): void;
}

interface OverLimitDeps {
  state: RegistryState;
  isClosed(): boolean;
  onRefused(spec: SeriesSpec, reason: RefusalReason): void;
  onFaults(spec: SeriesSpec, faults: readonly TagFault[]): void;
}

const keyOf = ({ family, scope, divisor }: SeriesSpec): string => `${family}\n${scope.service}\n${divisor}`;

export function createOverLimit({ state, isClosed, onRefused, onFaults }: OverLimitDeps): OverLimit {
  /** The last overflow handles by family, service and divisor. */
  const overflows = new Map<string, Handle>();

  const targetOf = (spec: SeriesSpec, mayRefuse: boolean): Handle | 'refused' | undefined => {
    if (!isSummable(spec.kind)) return mayRefuse ? 'refused' : undefined;
    const target = overflows.get(keyOf(spec));
    return target && sameLayout(target.spec.layout, spec.layout) ? target : undefined;
  };
  /** The target for a family that does not exist: the family would be created only to refuse its first series. */
  const targetOfNew = ({ kind, family }: SeriesSpec, mayRefuse: boolean): 'refused' | undefined => {
    if (!mayRefuse || isTaken(state, family)) return undefined;
    return isSummable(kind) && !isOverflowFull(state) ? undefined : 'refused';
  };
  /** The family, if its name has the kind of this series. */
  const holderOf = ({ family: name, kind }: SeriesSpec): Family | undefined => {
    const family = state.families.get(name);
    return family === undefined || family.taken || family.kind !== kind ? undefined : family;
  };

  return {
    decide({ spec, unfit, faults, also }, accepts) {
      if (isClosed() || unfit || also) return undefined;
      const family = holderOf(spec);
      const isNew = !state.families.has(spec.family);
      if (!isNew && (family === undefined || family.series.has(spec.identity))) return undefined;
      const limit = overLimit(state, family, spec);
      if (limit === undefined) return undefined;
      const mayRefuse = accepts('refused');
      const target = isNew ? targetOfNew(spec, mayRefuse) : targetOf(spec, mayRefuse);
      if (target === undefined || !accepts(target)) return undefined;
      onFaults(spec, faults);
      onRefused(spec, limit);
      return target;
    },
    formOf({ spec, unfit, faults, also }, placeholders, mayRefuse) {
      const target = targetOf(spec, mayRefuse);
      if (isClosed() || unfit || also || faults.length > 0 || target === undefined) return undefined;
      const free = placeholders.map((text) => spec.labels.find(([, value]) => value === text)?.[0]);
      // The service determines the overflow series.
      if (free.some((name) => name === undefined || name === 'svc_service')) return undefined;
      const nameHashes = free.map((name) => hashText(name!));
      const fixed = hashLabels(spec.labels.filter(([name]) => !free.includes(name)));
      return {
        target,
        takes(hashes) {
          const family = isClosed() ? undefined : holderOf(spec);
          if (family === undefined || (target !== 'refused' && target.at < 0)) return false;
          const limit = overLimit(state, family, spec);
          if (limit === undefined) return false;
          let hash = fixed;
          for (let i = 0; i < nameHashes.length; i++)
            hash = (hash + hashLabel(nameHashes[i]!, hashes[i]!)) | 0;
          if (hashesOf(family).has(hash)) return false;
          state.refusals.count(spec.family, limit);
          return true;
        },
      };
    },
    remember: (overflow) => void overflows.set(keyOf(overflow.spec), overflow),
    forget({ spec }) {
      if (spec.isOverflow) overflows.delete(keyOf(spec));
    },
  };
}
