"""api_schemas.py SWAGGER FOLDER CRD...: writes a JSON schema for each kind of Kubernetes' API that
SWAGGER (its api/openapi-spec/swagger.json) describes, and for each kind of the CRD files, as
kubeconform looks for them: FOLDER/KIND-GROUP-VERSION.json.

Fields that a schema does not name are refused, as a strict server refuses them: a misspelt field
would otherwise do nothing, silently.
"""
import json
import pathlib
import sys

import yaml

PREFIX = '#/definitions/'
# Of these only the JSON form says what is allowed.
FORMS = {
    'io.k8s.apimachinery.pkg.api.resource.Quantity': {'type': ['string', 'number']},
    'io.k8s.apimachinery.pkg.util.intstr.IntOrString': {'type': ['string', 'integer']},
}
WANTED = {'ConfigMap', 'DaemonSet', 'Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'Secret',
          'Service', 'ServiceAccount', 'StatefulSet'}


def closed(schema):
    """The same schema, in which an object has no other fields than those named."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if schema.get('x-kubernetes-int-or-string'):
        made.pop('anyOf', None)
        made['type'] = ['string', 'integer']
    free = schema.get('x-kubernetes-preserve-unknown-fields')
    if isinstance(made.get('properties'), dict) and 'type' in made and not free:
        made.setdefault('additionalProperties', False)
    return made


def whole(schema, definitions, above=()):
    """`schema` with what it refers to in place of the reference."""
    if isinstance(schema, list):
        return [whole(each, definitions, above) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if '$ref' in schema:
        name = schema['$ref'].removeprefix(PREFIX)
        if name in FORMS:
            return FORMS[name]
        return {} if name in above else whole(definitions[name], definitions, (*above, name))
    return {key: whole(value, definitions, above) for key, value in schema.items()}


def write(folder, kind, group, version, schema):
    name = '-'.join(filter(None, [kind, group.split('.')[0], version])).lower()
    schema['properties'].setdefault('apiVersion', {'type': 'string'})
    schema['properties'].setdefault('kind', {'type': 'string'})
    schema['properties']['metadata'] = {'type': 'object'} | schema['properties'].get('metadata', {})
    (folder / f'{name}.json').write_text(json.dumps(schema))


def main(swagger, folder, *crds):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    definitions = json.loads(pathlib.Path(swagger).read_text())['definitions']
    written = 0
    for definition in definitions.values():
        for kind in definition.get('x-kubernetes-group-version-kind', []):
            if kind['kind'] in WANTED:
                schema = closed(whole(definition, definitions))
                write(folder, kind['kind'], kind['group'], kind['version'], schema)
                written += 1
    metadata = closed(whole({'$ref': PREFIX + 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'},
                            definitions))
    for path in crds:
        crd = yaml.safe_load(pathlib.Path(path).read_text())['spec']
        for version in crd['versions']:
            schema = closed(version['schema']['openAPIV3Schema'])
            schema['properties']['metadata'] = metadata
            write(folder, crd['names']['kind'], crd['group'], version['name'], schema)
            written += 1
    print(f'{written} schemas in {folder}')


if __name__ == '__main__':
    main(*sys.argv[1:])
