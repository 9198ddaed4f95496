import type { LogsOptions } from '../src/sources/logs/options.ts';

/** The defaults of the configuration. */
export const logDefaults: LogsOptions = {
  paths: [],
  exclude: [],
  encoding: 'auto',
  container: 'auto',
  levelKey: 'level',
  roleField: 'service',
  startAt: 'beginning',
  rules: [],
};
