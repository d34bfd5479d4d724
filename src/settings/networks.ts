// Networks in CIDR notation, and whether an address is in one of them.
import { BlockList, isIP } from "node:net";

export interface Network {
  readonly address: string;
  /** Leading bits that count. */
  readonly bits: number;
}

interface Networks {
  /** `address`: as a socket has it; undefined: the connection is gone. */
  has(address: string | undefined): boolean;
}

/** `10.0.0.0/8`, `fd00::/8`, or one address; null: it is none. */
export function networkOf(text: string): Network | null {
  const [, address = "", length] = /^([^/]+?)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  // A zone is a name of one machine's interface.
  if (version === 0 || address.includes("%")) return null;
  const most = version === 4 ? 32 : 128;
  const bits = length === undefined ? most : Number(length);
  return bits <= most ? { address, bits } : null;
}

export function createNetworks(networks: readonly Network[]): Networks {
  const list = new BlockList();
  for (const { address, bits } of networks) list.addSubnet(address, bits, familyOf(address));
  return {
    has: (address) => {
      // A link-local address has the zone it came through.
      const bare = address?.replace(/%.*$/, "") ?? "";
      // An IPv4 client of a socket for both comes as `::ffff:10.0.0.1`, which the list takes for 10.0.0.1.
      return isIP(bare) !== 0 && list.check(bare, familyOf(bare));
    },
  };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}
