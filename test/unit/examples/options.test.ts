import { describe, expect, it } from 'vitest';
import {
  type Incident,
  incidentKinds,
  parseIncident,
  parseOrder,
  randomIncident,
} from '../../../examples/service/incidents.ts';
import { parseOptions } from '../../../examples/service/options.ts';
import { createRandom } from '../../../examples/service/random.ts';

describe('the arguments of the example service', () => {
  it('have defaults', () => {
    expect(parseOptions([])).toEqual({
      directory: '.demo',
      healthPort: 7933,
      metricsPort: 8000,
      controlPort: 7930,
      rpcPort: 7833,
      storePort: 7940,
      ratePerSecond: 10,
      names: 'svc',
      seed: 1,
      rotateBytes: 1_000_000,
      incidentEveryMs: 120_000,
    });
  });

  it.each([
    [['--rate', 'fast'], '--rate: not a usable number, got "fast"; 1 to 10000'],
    [['--rate', '0'], '--rate: not a usable number, got "0"; 1 to 10000'],
    [['--health-port', '65533'], '--health-port: not a usable number, got "65533"; 0 to 65532'],
    [['--incident-every', '2'], '--incident-every: not a duration, got "2"'],
    [['--names', 'product'], '--names: unknown names, got "product"; svc or cadence'],
    [['--port', '1'], "Unknown option '--port'"],
  ])('%j are refused', (args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });

  it('may do without a store', () => {
    expect(parseOptions(['--no-store', '--store-port', '7000'])?.storePort).toBeUndefined();
  });

  it('may ask for the usage', () => {
    expect(parseOptions(['-h'])).toBeUndefined();
  });
});

describe('an incident', () => {
  const kinds = incidentKinds({ hasStore: true });
  const storeless = incidentKinds({ hasStore: false });

  it.each<[string, Incident]>([
    ['restart history', { kind: 'restart', target: 'history' }],
    [' restart ', { kind: 'restart', target: 'matching' }],
    ['fatal', { kind: 'fatal', target: 'worker' }],
    ['persistence-errors', { kind: 'persistence-errors', target: 'history' }],
    ['backlog', { kind: 'backlog', target: 'order-processing' }],
    ['backlog payment-capture', { kind: 'backlog', target: 'payment-capture' }],
    ['store-down', { kind: 'store-down', target: 'main' }],
    ['schema-behind visibility', { kind: 'schema-behind', target: 'visibility' }],
    ['failover', { kind: 'failover', target: 'orders' }],
    ['failover payments', { kind: 'failover', target: 'payments' }],
  ])('%j is understood', (text, incident) => {
    expect(parseIncident(text, kinds)).toEqual(incident);
  });

  const allKinds = 'persistence-errors, restart, backlog, fatal, store-down, schema-behind, failover';
  it.each([
    ['', `no such incident: (nothing); use ${allKinds}`],
    ['flood', `no such incident: flood; use ${allKinds}`],
    ['restart backend', 'no such role: backend; use frontend, history, matching, worker'],
    ['backlog history', 'no such task list: history; use order-processing, order-mail, payment-capture'],
    ['failover mail', 'no such domain: mail; use orders, payments'],
  ])('%j is refused', (text, message) => {
    expect(() => parseIncident(text, kinds)).toThrow(message);
  });

  it.each([
    ['end', { end: undefined }],
    [' end backlog ', { end: 'backlog' }],
    ['fatal', { strike: { kind: 'fatal', target: 'worker' } }],
  ])('%j is an order', (text, order) => {
    expect(parseOrder(text, kinds)).toEqual(order);
  });

  it('that does not exist cannot be ended', () => {
    expect(() => parseOrder('end flood', kinds)).toThrow(`no such incident: flood; use ${allKinds}`);
  });

  it('of a store is refused without one', () => {
    expect(() => parseIncident('store-down', storeless)).toThrow(
      'no such incident: store-down; use persistence-errors, restart, backlog, fatal, failover',
    );
  });

  it.each([
    { of: 'a service with a store', allowed: kinds },
    { of: 'a service without', allowed: storeless },
  ])('of every kind comes by itself in $of', ({ allowed }) => {
    const random = createRandom(5);
    const seen = Array.from({ length: 100 }, () => randomIncident(random, allowed));
    expect(new Set(seen.map(({ kind }) => kind))).toEqual(new Set(allowed));
    // Each of them could have been requested.
    for (const { kind, target } of seen)
      expect(parseIncident(`${kind} ${target}`, allowed).target).toBe(target);
  });
});
