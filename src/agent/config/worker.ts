import type { LoadRequest } from './types.ts';
import { validate } from './validate.ts';

// A process of its own, so that the memory of zod and yaml goes away with it; it ends when it has answered.
process.once('message', (request: LoadRequest) => {
  process.send?.(validate(request), () => process.disconnect());
});
