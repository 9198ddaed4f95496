import type { Admission } from './admission.ts';
import { serviceOf } from './durable-store.ts';
import { claim, type Family, unclaim } from './family.ts';
import { layoutOf } from './histogram.ts';
import type { Labeller } from './labels.ts';
import type { Kind, RawTags, Shape } from './model.ts';
import { sanitizeName } from './names.ts';
import { closeSeries, isSameShape, openSeries, overLimit } from './opening.ts';
import { familyOf, type Room, tidy } from './room.ts';
import type { Source, Want } from './series.ts';
import type { Entry, Ledger } from './store.ts';

/** How series of the state come back before anybody asks for them. */
export interface Declaring {
  declare(kind: Kind, name: string, shape: Shape): readonly RawTags[];
  /** Gives all claims back; series that nobody owns go back to the state. */
  undeclare(): void;
}

interface Declared {
  family: Family;
  kind: Kind;
  rawName: string;
}

export interface DeclaringDeps {
  room: Room;
  admission: Admission;
  source: Source;
  labeller: Labeller;
  exempt: boolean;
}

const ownLabel = (name: string) => name.replace(/^(?:exported_)+/, '');

export function createDeclaring({ room, admission, source, labeller, exempt }: DeclaringDeps): Declaring {
  const { globals } = labeller;
  const declared: Declared[] = [];

  /** Judges whether what series of the state carry is what their rule gives today. */
  const createFits = (shape: Shape) => {
    const tags = shape.tags && new Set(shape.tags.map(sanitizeName));
    const isGiven = (name: string): boolean =>
      name === 'svc_service' ||
      (!labeller.isForbidden(name) && (!tags || tags.has(name) || tags.has(ownLabel(name))));
    /** Few names stand on many series. */
    const given = new Map<string, boolean>();
    const mayCarry = (name: string): boolean => {
      let may = given.get(name);
      if (may === undefined) {
        may = isGiven(name);
        given.set(name, may);
      }
      return may;
    };
    return ({ labels, overflow }: Entry): boolean => {
      let found = 0;
      for (const [name, value] of labels) {
        const global = globals.get(name);
        if (global?.[1] === value) found += 1;
        else if (global || !((overflow && name === 'overflow') || mayCarry(name))) return false;
      }
      return found === globals.size;
    };
  };

  const wantOf = (parked: Entry, rawName: string, shape: Shape): Want => {
    const { family, kind, labels, identity, texts } = parked;
    const bounds = kind === 'histogram' ? { bounds: texts.map(Number), boundTexts: texts } : {};
    return {
      source,
      family,
      kind,
      rawName,
      rawKey: '',
      labels,
      identity,
      scope: room.scopeOf(serviceOf(labels), source.relayed),
      layout: layoutOf(kind, { ...bounds, quantiles: texts }),
      help: shape.help ?? '',
      divisor: 1,
      exempt,
    };
  };

  const bringBack = (ledger: Ledger, { family, kind, rawName }: Declared, shape: Shape): RawTags[] => {
    const back: RawTags[] = [];
    const layout = layoutOf(kind, shape);
    const fits = createFits(shape);
    for (const parked of ledger.parked(family.name)) {
      if (serviceOf(parked.labels) !== source.service) continue;
      const want = wantOf(parked, rawName, shape);
      const wanted = isSameShape(parked, { kind, layout }) && fits(parked);
      if (!wanted || (!parked.overflow && overLimit(room, family, want))) ledger.giveUp(parked);
      else {
        openSeries(room, family, want, parked.overflow);
        const own = parked.labels.filter(([name]) => !globals.has(name) && name !== 'svc_service');
        if (!parked.overflow) back.push(Object.fromEntries(own));
      }
    }
    return back;
  };

  return {
    declare(kind, rawName, shape) {
      const family = familyOf(room, sanitizeName(rawName));
      const one = { family, kind, rawName };
      declared.push(one);
      claim(family, { kind, rawName, help: shape.help ?? '' });
      admission.judge(family);
      const { ledger } = source.store;
      return ledger && !family.taken && family.kind === kind ? bringBack(ledger, one, shape) : [];
    },
    undeclare() {
      for (const { family, kind, rawName } of declared.splice(0)) {
        for (const series of [...family.series.values()]) {
          if (!series.first && series.want.source === source) closeSeries(room, family, series, true);
        }
        unclaim(family, { kind, rawName });
        admission.judge(family);
        tidy(room, family);
      }
    },
  };
}
