// Which file system a path is on, from /proc/self/mounts. Pure.

interface Mount {
  readonly place: string;
  readonly kind: string;
}

/** Blanks and the like are octal there. */
const plain = (text: string): string =>
  text.replace(/\\(\d{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

/** The one that the path is on: the innermost, and of several on one place the last. */
export function mountOf(path: string, mounts: string): Mount | null {
  let found: Mount | null = null;
  for (const line of mounts.split("\n")) {
    const [, place = "", kind = ""] = line.split(" ").map(plain);
    const isAbove = kind !== "" && (path === place || path.startsWith(place === "/" ? "/" : `${place}/`));
    if (isAbove && place.length >= (found?.place.length ?? 0)) found = { place, kind };
  }
  return found;
}

export function isNetwork(kind: string): boolean {
  return /^(?:nfs|nfs4|cifs|smb3|smbfs|9p|ceph|glusterfs|lustre|afs|fuse\.(?:sshfs|s3fs|rclone|gcsfuse|glusterfs))$/.test(
    kind,
  );
}

export function isContainerLayer(kind: string): boolean {
  return kind === "overlay" || kind === "aufs" || kind === "fuse-overlayfs";
}
