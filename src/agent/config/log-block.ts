import * as z from 'zod';
import { logLevels } from '../../core/reasons.ts';

/** Keys that every entry has for something else. */
const takenKeys: ReadonlySet<string> = new Set(['ts', 'msg', 'logger']);

/** `log`: the agent's own log, in the spec's block (spec, Logging configuration). */
export const logBlock = z
  .strictObject({
    level: z
      .enum(logLevels, 'unknown level; use debug, info, warn, error or fatal (lower case)')
      .default('info'),
    encoding: z.enum(['json', 'console'], 'unknown encoding; use json or console').default('json'),
    outputFile: z.string().min(1).optional().describe('Its directory must exist and be writable.'),
    stdout: z.boolean().default(false),
    levelKey: z
      .string()
      .min(1)
      .refine((key) => !takenKeys.has(key), 'a key that means something else; use another name')
      .default('level'),
  })
  .describe('The agent’s own log.');
