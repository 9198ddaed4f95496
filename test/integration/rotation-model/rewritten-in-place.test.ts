import { playKind } from '../../rotation-kinds.ts';

playKind('rewritten in place');
