import { describe, expect, it } from 'vitest';
import { type Incident, parseIncident, randomIncident } from '../../../examples/service/incidents.ts';
import { parseOptions } from '../../../examples/service/options.ts';
import { createRandom } from '../../../examples/service/random.ts';

describe('the arguments of the example service', () => {
  it('have defaults', () => {
    expect(parseOptions([])).toEqual({
      directory: '.demo',
      healthPort: 7933,
      metricsPort: 8000,
      controlPort: 7930,
      ratePerSecond: 10,
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
    [['--port', '1'], "Unknown option '--port'"],
  ])('%j are refused', (args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });

  it('may ask for the usage', () => {
    expect(parseOptions(['-h'])).toBeUndefined();
  });
});

describe('an incident', () => {
  it.each<[string, Incident]>([
    ['restart history', { kind: 'restart', target: 'history' }],
    [' restart ', { kind: 'restart', target: 'matching' }],
    ['fatal', { kind: 'fatal', target: 'worker' }],
    ['persistence-errors', { kind: 'persistence-errors', target: 'history' }],
    ['backlog', { kind: 'backlog', target: 'order-processing' }],
    ['backlog payment-capture', { kind: 'backlog', target: 'payment-capture' }],
  ])('%j is understood', (text, incident) => {
    expect(parseIncident(text)).toEqual(incident);
  });

  it.each([
    ['', 'no such incident: (nothing); use persistence-errors, restart, backlog, fatal'],
    ['flood', 'no such incident: flood; use persistence-errors, restart, backlog, fatal'],
    ['restart backend', 'no such role: backend; use frontend, history, matching, worker'],
    ['backlog history', 'no such task list: history; use order-processing, order-mail, payment-capture'],
  ])('%j is refused', (text, message) => {
    expect(() => parseIncident(text)).toThrow(message);
  });

  it('of every kind comes by itself', () => {
    const random = createRandom(5);
    const kinds = new Set(Array.from({ length: 50 }, () => randomIncident(random).kind));
    expect([...kinds].sort()).toEqual(['backlog', 'fatal', 'persistence-errors', 'restart']);
  });
});
