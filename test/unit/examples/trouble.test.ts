import { beforeEach, describe, expect, it } from 'vitest';
import { incidentKinds, parseIncident } from '../../../examples/service/incidents.ts';
import { createRandom } from '../../../examples/service/random.ts';
import { createTrouble, type Trouble } from '../../../examples/service/trouble.ts';
import { type HandClock, handClock } from '../../clock.ts';

const kinds = incidentKinds({ hasStore: true });
let clock: HandClock;
let trouble: Trouble;
let done: unknown[];

beforeEach(() => {
  clock = handClock();
  done = [];
  trouble = createTrouble(
    { everyMs: 0, kinds },
    {
      clock,
      random: createRandom(1),
      announce: () => {},
      restart: (role, fatal) => done.push(['restart', role, fatal]),
      failOver: (domain) => done.push(['failover', domain]),
    },
  );
});

const strike = (text: string) => trouble.strike(parseIncident(text, kinds));
const lasting = () => Object.entries(trouble.conditions).filter(([, target]) => target !== undefined);

describe('an incident', () => {
  it.each([
    ['persistence-errors', 'failingRole', 'history', 20_000],
    ['backlog', 'starvedTaskList', 'order-processing', 40_000],
    ['store-down', 'refusingStore', 'main', 20_000],
    ['schema-behind', 'outdatedDatabase', 'persistence', 40_000],
  ])('of kind %s is a condition for a while', (kind, condition, target, lastsMs) => {
    strike(kind);
    clock.advance(lastsMs - 1);
    expect(lasting()).toEqual([[condition, target]]);
    clock.advance(1);
    expect(lasting()).toEqual([]);
    expect(done).toEqual([]);
  });

  it('that comes while another of its kind lasts takes its place, for its own whole time', () => {
    strike('schema-behind persistence');
    clock.advance(30_000);
    strike('schema-behind visibility');
    clock.advance(39_999);
    expect(lasting()).toEqual([['outdatedDatabase', 'visibility']]);
    clock.advance(1);
    expect(lasting()).toEqual([]);
  });

  it('that is an event happens at once', () => {
    strike('restart frontend');
    strike('fatal');
    strike('failover payments');
    expect(done).toEqual([
      ['restart', 'frontend', false],
      ['restart', 'worker', true],
      ['failover', 'payments'],
    ]);
    expect(lasting()).toEqual([]);
  });
});
