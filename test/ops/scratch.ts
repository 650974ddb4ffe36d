import { folderFor } from '../liveness/started.ts';
import { scopeOfBlock } from '../process/harness.ts';

/** A folder of this test file alone, gone when its tests are over. */
export const scratch = (): string => folderFor(scopeOfBlock());
