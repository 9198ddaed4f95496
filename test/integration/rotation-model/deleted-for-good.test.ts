import { playKind } from '../../rotation-kinds.ts';

playKind('deleted for good');
