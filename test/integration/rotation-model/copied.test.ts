import { playKind } from '../../rotation-kinds.ts';

playKind('copied and truncated');
