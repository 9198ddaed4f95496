import type { Fault } from '../../core/errors.ts';
import type { AgentConfig } from './types.ts';

/** Where something stands; line and column count from 1. */
export interface Place {
  file: string;
  line: number;
  column: number;
}

/** A fault in a file; `where` already reads `FILE:LINE:COL: path`. */
export interface PlacedFault extends Fault {
  place?: Place;
  /** Path inside the configuration, empty for the file as such. */
  path: string;
}

/** One thing that the service's own files gave. */
export interface Discovered {
  /** Path in the agent's configuration that it fills. */
  path: string;
  /** Plain text for people; never a secret. */
  value: string;
  place: Place;
}

/** What became of the files; plain data, without secrets outside `config`. */
export interface Loaded {
  /** Missing when there are faults. */
  config?: AgentConfig;
  /** In `agent.yaml`, or about the files as such; any of them is fatal. */
  faults: readonly PlacedFault[];
  /** In `agent.yaml`; none of them is fatal. */
  warnings: readonly PlacedFault[];
  /** In the service's own files, and secrets that are not there: `check` fails, `run` warns and goes on. */
  findings: readonly PlacedFault[];
  discovered: readonly Discovered[];
  /** Every configuration file read or looked for, absolute: what a reload has to watch. */
  files: readonly string[];
}

/** What names the files; the command line wins over the environment, which wins over the file. */
export interface LoadRequest {
  /** `agent.yaml`; without it the default places are tried. */
  file?: string;
  /** Replaces `serviceConfig` of the file unless empty. */
  serviceConfig?: readonly string[];
  /** Replaces `SVC_AGENT_ROLES`, which replaces `roles` of the file. */
  roles?: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
}

/** A configuration without faults. */
export type ReadyConfig = Loaded & { config: AgentConfig };
