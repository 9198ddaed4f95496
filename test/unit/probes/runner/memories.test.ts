import { describe, expect, test } from 'vitest';
import { createMemories } from '../../../../src/probes/runner/probe-state.ts';
import { dueBed, runnerBed, scripted } from './bed.ts';

const text = (section: Uint8Array) => JSON.parse(Buffer.from(section).toString());

describe('memories', () => {
  test('come back from the state as they were', () => {
    const before = createMemories();
    const kept = { a: { n: 1 }, 'domain/ö "x"': ['x', null, 1.5], __proto__x: 'y', '': 0 };
    for (const [name, memory] of Object.entries(kept)) before.keep(name, JSON.stringify(memory));
    before.keep('__proto__', '"p"');
    const after = createMemories();
    after.restore(before.freeze());
    for (const [name, memory] of Object.entries(kept)) expect(after.recall(name)).toEqual(memory);
    expect(after.recall('__proto__')).toBe('p');
    expect(after.recall('b')).toBeUndefined();
    expect(after.freeze()).toEqual(before.freeze());
  });

  test('the section is made anew only when something changed', () => {
    const memories = createMemories();
    memories.keep('a', '1');
    const frozen = memories.freeze();
    memories.keep('a', '1');
    expect(memories.freeze()).toBe(frozen);
    memories.keep('a', '2');
    expect(text(memories.freeze())).toEqual({ version: 1, memories: [['a', 2]] });
  });

  test('of names that are not in use the newest are kept', () => {
    const memories = createMemories({ maxUnused: 2 });
    for (const name of ['a', 'b', 'c', 'd', 'e']) memories.keep(name, '0');
    memories.keep('b', '1');
    memories.use(new Set(['a']));
    expect(text(memories.freeze()).memories).toEqual([
      ['a', 0],
      ['e', 0],
      ['b', 1],
    ]);
  });

  test.each([
    ['nothing', ''],
    ['no JSON', '{'],
    ['no UTF-8', '\xff'],
    ['null', 'null'],
    ['another version', '{"version":2,"memories":[]}'],
    ['no memories', '{"version":1,"memories":{}}'],
    ['a nameless one', '{"version":1,"memories":[[1,2]]}'],
    ['half of one', '{"version":1,"memories":[["a"]]}'],
  ])('a section is refused: %s', (_, section) => {
    const restore = () => createMemories().restore(Buffer.from(section, 'latin1'));
    expect(restore).toThrow(expect.objectContaining({ code: 'state_unreadable' }));
  });
});

describe('what a probe remembers', () => {
  test('is handed to the next check as a copy of its own; a check without leaves it', async () => {
    const probe = scripted('domain/orders');
    const bed = await dueBed(probe);
    expect(probe.lastCheck.recalled).toBeUndefined();
    const remember = { failovers: ['v1'] };
    await probe.lastCheck.finds({ remember });
    remember.failovers.push('later');
    await bed.due(probe);
    expect(probe.lastCheck.recalled).toEqual({ failovers: ['v1'] });
    (probe.lastCheck.recalled as typeof remember).failovers.push('mine');
    await probe.lastCheck.finds({ reason: 'too_slow', msg: 'slow' });
    await bed.due(probe);
    expect(probe.lastCheck.recalled).toEqual({ failovers: ['v1'] });
  });

  test('what is no JSON is a failed check, and counts nothing', async () => {
    const counter = { name: 'svc_domain_failovers_total' as const, labels: { domain: 'orders' } };
    const probe = scripted('domain/orders', { row: { shows: { counters: [counter] } } });
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ remember: 10n, increases: [{ ...counter, value: 1 }] });
    expect(bed.report(probe).last).toMatchObject({ ok: false, reason: 'failed' });
    expect(bed.series('svc_domain')).toEqual({ 'svc_domain_failovers_total{domain="orders"}': 0 });
  });

  test('goes into the state with the runner’s section', async () => {
    const probe = scripted('domain/orders');
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ remember: { n: 1 } });
    expect(bed.runner.durable.name).toBe('probes');
    expect(text(bed.runner.durable.freeze()).memories).toEqual([['domain/orders', { n: 1 }]]);
    bed.configure();
    expect(text(bed.runner.durable.freeze()).memories).toEqual([['domain/orders', { n: 1 }]]);
  });

  test('of probes that are gone for good it does not grow for ever', () => {
    const bed = runnerBed();
    const memories = Array.from({ length: 1500 }, (_, i) => [`domain/${i}`, i]);
    bed.runner.durable.restore(Buffer.from(JSON.stringify({ version: 1, memories })));
    bed.configure(scripted('domain/3'));
    const kept = text(bed.runner.durable.freeze()).memories;
    expect(kept).toEqual([memories[3], ...memories.slice(500)]);
  });
});
