// The plan whole, over more random histories than a run of the unit tests has. All 10,000 take a minute: HISTORIES=10000.
import { test } from "node:test";
import { endsAsPlanned } from "../unit/plan/whole-histories.ts";

const count = Number(process.env["HISTORIES"] ?? 2_000);

test(`${count} random histories: a plan that is executed action by action ends where it says`, () =>
  endsAsPlanned(count));
