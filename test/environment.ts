import { afterAll, expect } from 'vitest';
import { noteFacts } from './until.ts';

noteFacts((what) => expect(what).not.toBe(''));

// Files share the process of their worker, and some set variables: after each file, the environment is as before.
const before = { ...process.env };
afterAll(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});
