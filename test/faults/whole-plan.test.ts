// The plan whole, over as many random histories as take a minute: what 300 show at each run of the unit tests.
import { test } from "node:test";
import { endsAsPlanned } from "../unit/plan/whole-histories.ts";

test("10,000 random histories: a plan that is executed action by action ends where it says", () =>
  endsAsPlanned(10_000));
