import type { Admission } from './admission.ts';
import { type Asked, createAsking, rawKeyOf, type Translate } from './asking.ts';
import { createDeclaring } from './declaring.ts';
import { foldTag } from './forbidden.ts';
import type { Desk, Handle, PartHandle } from './handle.ts';
import { createHandle } from './handles.ts';
import { createLabeller, identityOf, type Labeller, type TagFault } from './labels.ts';
import type { Counter, Gauge, Histogram, Intake, Kind, RawTags, Shape, Summary } from './model.ts';
import { sanitizeName } from './names.ts';
import type { Component, RefusalReason, RegistryDrop } from './reasons.ts';
import type { Limits, Room } from './room.ts';
import type { Source, Want } from './series.ts';
import type { Store } from './store.ts';

export interface IntakeOptions {
  /** Key of the service; `''` for what belongs to none. */
  service: string;
  component: Component;
  /** True for what a role itself sent. */
  relayed: boolean;
  /** Of two sources that send the same series the lower rank keeps it: the order of `services`. */
  rank: number;
  store: Store;
  globalTags: RawTags;
  /** Tags were made by others: reserved names are renamed and values cleaned. */
  received: boolean;
  /** Series that come without `svc_service` get the service's key. */
  tagService: boolean;
  translate?: Translate;
  /** The agent's own closed label sets: neither limited nor subject to forbidden tags. */
  exempt?: boolean;
  /** Its totals began, and go on, without the agent, or without this intake: somebody else keeps them. */
  carried?: boolean;
}

/** A series whose numbers come one by one, as the lines of a page do. */
export interface Parts {
  /** The number at this place: 0 for single ones, else in the order of `SeriesView.at`. */
  part(index: number): PartHandle;
  release(): void;
}

/** An intake as the one who opened it has it. */
export interface OpenIntake extends Intake {
  parts(kind: Kind, name: string, tags: RawTags, shape?: Shape): Parts;
  /**
   * Durable store: claims a family and brings back its series from the state, in sight from the next publish
   * on even before their source asks for them; those that no longer fit `shape` are given up. Returns the tags
   * of those that came back, for a source that wants to own them and let them expire.
   */
  declare(kind: Kind, name: string, shape?: Shape): readonly RawTags[];
  /**
   * Ends all its series and claims; durable ones stay in the state for who declares them or asks next:
   * close an intake before its successor declares. What is asked for afterwards is refused.
   */
  close(): void;
}

/** What an intake needs of its registry. */
export interface IntakeDeps {
  room: Room;
  admission: Admission;
  limits: Limits;
  serviceKeys: ReadonlySet<string>;
  drop(reason: RegistryDrop): void;
}

function labellerOf(options: IntakeOptions, { limits, serviceKeys }: IntakeDeps): Labeller {
  return createLabeller({
    globalTags: options.globalTags,
    received: options.received,
    exempt: options.exempt ?? false,
    service: options.tagService ? options.service : '',
    serviceKeys,
    forbidden: new Set(limits.forbiddenTags.map(foldTag)),
    allowValues: new Set(limits.allowValues.map(sanitizeName)),
  });
}

function sourceOf(options: IntakeOptions, scopeOf: Room['scopeOf'], labeller: Labeller): Source {
  const { rank, component, relayed, store, tagService, carried = false } = options;
  return {
    rank,
    component,
    relayed,
    store,
    carried,
    service: tagService ? options.service : '',
    overflow(service) {
      const labels = labeller.overflow(service);
      return { labels, identity: identityOf(labels), scope: scopeOf(service, relayed) };
    },
  };
}

/** Opens handles, one for each raw series however often it is asked for. */
function createOpening(options: IntakeOptions, deps: IntakeDeps, source: Source, labeller: Labeller) {
  const { room, admission, drop } = deps;
  const { received, exempt = false, translate } = options;
  const ask = createAsking({ source, labeller, scopeOf: room.scopeOf, received, exempt, translate });
  const handles = new Map<string, Handle>();
  let isClosed = false;
  const desk: Desk = {
    drop,
    leave(handle) {
      handles.delete(handle.want.rawKey);
      admission.leave(handle, false);
    },
    restarted: (series) => series.store.restarted(series, room.startMs()),
  };
  const refused = ({ family, rawName, labels, scope }: Want, reason: RefusalReason) =>
    room.tally.refused({ family, rawName, labels, service: scope.service, reason });
  const countFaults = (want: Want, faults: readonly TagFault[]) => {
    for (const fault of faults) {
      drop(fault);
      if (fault === 'tag_collision') refused(want, fault);
    }
  };

  return {
    /** Ends the handles that are there; those that are asked for later are refused. */
    close() {
      isClosed = true;
      // Those that wait go first: they would be let in only to be closed.
      for (const waits of [true, false]) {
        for (const handle of handles.values()) {
          if (waits && !handle.waitsIn) continue;
          handles.delete(handle.want.rawKey);
          handle.owners = 0;
          admission.leave(handle, true);
        }
      }
    },
    open(asked: Asked): Handle {
      const rawKey = rawKeyOf(asked);
      const known = handles.get(rawKey);
      if (known) {
        known.owners += 1;
        return known;
      }
      const { want, unfit, faults } = ask(asked, rawKey);
      const handle = createHandle(want, desk);
      if (isClosed) return handle;
      handles.set(rawKey, handle);
      countFaults(want, faults);
      if (unfit) refused(want, unfit);
      else admission.join(handle);
      return handle;
    },
  };
}

/** An intake of a registry; use `registry.intake`. */
export function createIntake(options: IntakeOptions, deps: IntakeDeps): OpenIntake {
  const { room, admission } = deps;
  const labeller = labellerOf(options, deps);
  const source = sourceOf(options, room.scopeOf, labeller);
  const declaring = createDeclaring({ room, admission, source, labeller, exempt: options.exempt ?? false });
  const opening = createOpening(options, deps, source, labeller);

  /** A vocabulary may turn one kind with a single number into another: their handles take the same calls. */
  const of =
    <H>(kind: Kind) =>
    (name: string, tags: RawTags, shape: Shape = {}) =>
      opening.open({ kind, name, tags, shape }) as Handle & H;

  return {
    counter: of<Counter>('counter'),
    gauge: of<Gauge>('gauge'),
    histogram: of<Histogram>('histogram'),
    summary: of<Summary>('summary'),
    untyped: of<Gauge>('untyped'),
    parts: (kind, name, tags, shape) => of<Parts>(kind)(name, tags, shape),
    declare: (kind, name, shape = {}) => declaring.declare(kind, name, shape),
    close() {
      opening.close();
      declaring.undeclare();
    },
  };
}
