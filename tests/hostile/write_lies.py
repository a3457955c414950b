"""What a service may answer to a commit without having done it, or having done something else. By name: the request,
and the response as a function of the body, of a function that gets the service's own response, and of the project."""
import json

from site_of_lies import document_of, http

# These look like a service whose reads lag, so the revision is searched for, and published again after minutes.
LOOKED_FOR = ('the id of no revision', 'an id that leads elsewhere', 'an id of control characters',
              'another revision, and none made')
STATUSES = (401, 403, 404, 409, 413, 423, 500)


def told(answer, **changes):
    """The service's own response with other fields."""
    document = document_of(answer)
    record = document.get('record', document)
    record.update({name: value for name, value in changes.items() if name == 'id'})
    record.get('data', record).update(changes)
    return http(json.dumps(document), f'{answer[0]} OK')


def invented(body, ident):
    """As if it were stored."""
    return http(json.dumps({'record': {'id': ident, 'created_at': '2026-11-01T00:00:00Z', **json.loads(body)}}),
                '201 Created')


def table(trap_url, other_revision, other_chunk):
    """`other_…` belong to a project that is none of the liar's business."""
    lies = {}
    for request in ('POST revisions', 'POST file_chunks', 'PATCH projects'):
        answers = {'HTML': http('<html>', kind='text/html'), 'nothing': [], 'empty': http(''),
                   'no record': http('{"record":null}'), 'cut off': http('{"record":{"id":"x"')[:1],
                   'a redirect': http('', '307 Moved', f'Location: {trap_url}/'),
                   **{f'status {status}': http('{"error":"no","code":"no"}', f'{status} No') for status in STATUSES}}
        for name, answer in answers.items():
            lies[f'{request}: {name}'] = request, lambda body, ask, project, answer=answer: answer
        lies[f'{request}: done, and answered by an error'] = (
            request, lambda body, ask, project: ask() and http('{"error":"no"}', '500 No'))
    lies |= {
        'the id of another revision': ('POST revisions', lambda body, ask, project: told(ask(), id=other_revision)),
        'another revision, and none made': ('POST revisions', lambda body, ask,
                                            project: invented(body, other_revision)),
        'the id of no revision': ('POST revisions', lambda body, ask, project: invented(body, 'nowhere-revision')),
        'an id that leads elsewhere': ('POST revisions', lambda body, ask,
                                       project: invented(body, f'../revisions/{other_revision}')),
        'an id of control characters': ('POST revisions', lambda body, ask, project: invented(body, '\x1b[2J\n')),
        'another manifest': ('POST revisions', lambda body, ask,
                             project: told(ask(), manifest={'files': {}}, message='other')),
        'another project': ('POST revisions', lambda body, ask, project: told(ask(), project='other')),
        'the id of another chunk': ('POST file_chunks', lambda body, ask, project: told(ask(), id=other_chunk)),
        'the id of no chunk': ('POST file_chunks', lambda body, ask, project: invented(body, 'nowhere-chunk')),
        'other content': ('POST file_chunks', lambda body, ask, project: told(ask(), content='other')),
        'another latest revision': ('PATCH projects', lambda body, ask,
                                    project: told(ask(), latest_revision=other_revision)),
        'head is not moved': ('PATCH projects', lambda body, ask,
                              project: http(json.dumps({'id': project, **json.loads(body)}))),
        'another record': ('PATCH projects', lambda body, ask, project: told(ask(), id='other')),
    }
    return lies
