"""Projects made through the Data API alone, and what a mount says about itself."""
import hashlib

CHUNK = 12_000  # bytes; fits a record


def store(api, path, text, digest, size=CHUNK):
    """The ids of the chunks that hold a text."""
    return [api.create('file_chunks', rev='', path=path, seq=seq, hash=digest, content=text[begin:begin + size])['id']
            for seq, begin in enumerate(range(0, len(text), size))]


def publish(api, name, contents, project=None, parents=()):
    """Publishes `contents` (path: ASCII text) as a revision, with chunks of up to CHUNK bytes; creates the project
    unless one is given. The project's id."""
    project = project or api.create('projects', name=name)['id']
    manifest = {}
    for path, content in contents.items():
        digest = hashlib.sha256(content.encode()).hexdigest()
        manifest[path] = {'h': digest, 's': len(content), 'c': store(api, path, content, digest)}
    revision = api.create('revisions', project=project, parents=list(parents), agent='x', message=name,
                          manifest={'tx': '0' * 32, 'files': manifest}, state={})['id']
    api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
    return project


def some_files(count, word='content'):
    return {f'dir{n % 7}/file{n}': f'{word} {n}\n' for n in range(count)}


def metrics(mount):
    """Operations that the kernel has requested, by name."""
    counts = {}
    for line in (mount.directory / '.playfs/metrics').read_text().splitlines():
        if line.startswith('playfs_operations_total{'):
            name, value = line.split('"')[1], line.split()[-1]
            counts[name] = int(value)
    return counts
