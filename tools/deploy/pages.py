"""pages.py PROGRAM FOLDER: the manual pages and the completion scripts of tactus, made from what
its commands declare of themselves (`tactus describe`): nothing in them is written a second time.

Writes FOLDER/man/*.1.gz, FOLDER/tactus.bash, FOLDER/_tactus (zsh) and FOLDER/tactus.fish.
"""
import gzip
import json
import pathlib
import subprocess
import sys


def read_option(declared):
    """What one option is, as pages and scripts show it. `value` stands for its value; empty: it is
    a flag. `choices` are the only values that it takes, where they can be listed."""
    option = {'names': declared['names'], 'description': declared['description'],
              'group': declared['group'], 'required': declared['required'],
              'value': '', 'choices': [], 'bounds': '', 'initial': '', 'folder': False}
    if declared['flag']:
        return option
    option['initial'] = declared['default']
    # The type, and behind each colon what a validator says of itself.
    option['value'], *notes = declared['type'].split(':')
    for note in notes:
        if note in ('DIR', 'FILE'):
            option['value'] = note
            option['folder'] = note == 'DIR'
        elif note == 'POSITIVE':
            option['bounds'] = 'more than 0'
        elif note == 'NONNEGATIVE':
            option['bounds'] = '0 or more'
        elif note.startswith('{') and note.endswith('}'):
            option['choices'] = note[1:-1].split(',')
        elif 'in [' in note:
            option['bounds'] = note.split('in [', 1)[1][:-1].replace(' - ', ' to ', 1)
    option['value'] = declared['positional'] or declared['text'] or option['value']
    return option


def read_command(declared, above=()):
    words = (*above, declared['name'])
    return {'words': words, 'description': declared['description'], 'footer': declared['footer'],
            'options': [read_option(each) for each in declared['options']],
            'commands': [read_command(each, words) for each in declared['commands']]}


def roff(text):
    """Text as roff shows it unchanged: no command at a line's start, hyphens as minus."""
    lines = text.replace('\\', '\\e').replace('-', '\\-').split('\n')
    return '\n'.join('\\&' + line if line.startswith(('.', "'")) else line for line in lines)


def roff_names(option):
    names = ', '.join(f'\\fB{roff(name)}\\fR' for name in option['names'])
    if not option['value']:
        return names
    return f'{names}{" " if names else ""}\\fI{roff(option["value"])}\\fR'


def roff_entry(option):
    text = option['description']
    for what, more in (('required', 'Required'),
                       ('choices', 'One of ' + ', '.join(option['choices'])),
                       ('bounds', 'Allowed: ' + option['bounds']),
                       ('initial', 'Default: ' + option['initial'])):
        if option[what]:
            text += '.' if text and not text.endswith('.') else ''
            text += f'{" " if text else ""}{more}.'
    return f'.TP\n{roff_names(option)}\n{roff(text)}\n'


def roff_synopsis(command):
    line = f'\\fB{roff(" ".join(command["words"]))}\\fR'
    for option in command['options']:
        if option['required'] and option['names']:
            line += ' ' + roff_names(option)
    line += ' [\\fIOPTION\\fR]...'
    for option in command['options']:
        if not option['names']:
            name = f'\\fI{roff(option["value"])}\\fR'
            line += f' {name}' if option['required'] else f' [{name}]'
    return line + (' \\fICOMMAND\\fR ...' if command['commands'] else '') + '\n'


def roff_options(command):
    text = ''
    for group in dict.fromkeys(option['group'] for option in command['options']):
        if group != 'Options':
            text += f'.SS "{roff(group)}"\n'
        text += ''.join(roff_entry(each) for each in command['options'] if each['group'] == group)
    return text


def roff_below(command):
    """A command of commands: each of them is a section of its page."""
    text = ''
    for each in command['commands']:
        text += (f'.SH "{roff(" ".join(each["words"]))}"\n{roff_synopsis(each)}{roff_options(each)}'
                 f'.PP\n{roff(each["description"])}\n')
        if each['footer']:
            text += f'.PP\n{roff(each["footer"])}\n'
        text += roff_below(each)
    return text


def manual_page(command, version):
    whole = len(command['words']) == 1
    name = '-'.join(command['words'])
    text = (f'.TH "{roff(name)}" 1 "" "Tactus {version}" "Tactus"\n.SH NAME\n'
            f'{roff(name)} \\- {roff(command["description"])}\n'
            f'.SH SYNOPSIS\n{roff_synopsis(command)}')
    if command['footer']:
        text += f'.SH DESCRIPTION\n{roff(command["footer"])}\n'
    text += '.SH OPTIONS\n' + roff_options(command)
    if whole:
        text += '.SH COMMANDS\n' + ''.join(
            f'.TP\n\\fB{roff("-".join(each["words"]))}\\fR(1)\n{roff(each["description"])}\n'
            for each in command['commands'])
    else:
        text += roff_below(command)
    text += ('.SH EXIT STATUS\n0: done. 1: it ran, and something failed. 2: the command line or a '
             'file is wrong; one line on standard error says what, and the remedy.\n')
    if whole:
        return text + '.SH FILES\n/etc/tactus/*.env: what the services of systemd are told.\n'
    return text + '.SH SEE ALSO\n\\fBtactus\\fR(1)\n'


def places_of(command):
    """The words of each command, in order, with the command."""
    yield ' '.join(command['words']), command
    for each in command['commands']:
        yield from places_of(each)


def quoted(text):
    """In single quotes, as all three shells read it."""
    return "'" + text.replace("'", "'\\''") + "'"


def command_pattern(places):
    """All places but the first, as a pattern of `case`."""
    return '|'.join(quoted(words) for words, _ in places[1:])


def value_clauses(places, choices, folders, files):
    """`case` clauses of bash and zsh for the word behind an option."""
    text = ''
    for words, command in places:
        for option in command['options']:
            if option['names'] and option['value']:
                pattern = '|'.join(quoted(f'{words} {name}') for name in option['names'])
                action = (choices.replace('CHOICES', ' '.join(option['choices']))
                          if option['choices'] else folders if option['folder'] else files)
                text += f'    {pattern}) {action}; return ;;\n'
    return text


def names_of(command):
    return [name for option in command['options'] for name in option['names']]


def bash(places):
    text = f'''# bash completion of tactus
_tactus() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local place=tactus i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place ${{COMP_WORDS[i]}}" in
      {command_pattern(places)}) place+=" ${{COMP_WORDS[i]}}" ;;
      *) break ;;
    esac
  done
  case "$place $prev" in
'''
    text += value_clauses(places, '''mapfile -t COMPREPLY < <(compgen -W 'CHOICES' -- "$cur")''',
                          'mapfile -t COMPREPLY < <(compgen -d -- "$cur")',
                          'mapfile -t COMPREPLY < <(compgen -f -- "$cur")')
    text += '  esac\n  local words=\n  case $place in\n'
    for place, command in places:
        words = [each['words'][-1] for each in command['commands']] + names_of(command)
        text += f"    {quoted(place)}) words='{' '.join(words)}' ;;\n"
    return text + '''  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
complete -o filenames -F _tactus tactus
'''


def zsh(places):
    text = f'''#compdef tactus
# zsh completion of tactus
_tactus() {{
  local place=tactus i
  local -a commands options
  for ((i = 2; i < CURRENT; i++)); do
    case "$place $words[i]" in
      {command_pattern(places)}) place+=" $words[i]" ;;
      *) break ;;
    esac
  done
  case "$place $words[CURRENT-1]" in
'''
    text += value_clauses(places, 'compadd -- CHOICES', '_files -/', '_files')
    text += '  esac\n  case $place in\n'
    for place, command in places:
        text += f'    {quoted(place)})\n      commands=('
        for each in command['commands']:
            text += f'\n        {quoted(each["words"][-1] + ":" + each["description"])}'
        text += ')\n      options=('
        for option in command['options']:
            for name in option['names']:
                text += f'\n        {quoted(name + ":" + option["description"])}'
        text += ') ;;\n'
    return text + '''  esac
  if [[ $PREFIX == -* ]]; then _describe -o option options; return; fi
  if (( ${#commands} )); then _describe command commands; return; fi
  _files
}
if [ "$funcstack[1]" = _tactus ]; then _tactus "$@"; else compdef _tactus tactus; fi
'''


def fish_values(option):
    if option['choices']:
        return ' -x -a ' + quoted(' '.join(option['choices']))
    if option['folder']:
        return " -x -a '(__fish_complete_directories)'"
    return ' -r' if option['value'] else ''


def fish(places):
    text = f'''# fish completion of tactus
function __tactus_at
    set -l place tactus
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
            case {' '.join(quoted(words) for words, _ in places[1:])}
                set place "$place $word"
            case '*'
                break
        end
    end
    test "$place" = "$argv"
end
'''
    for words, command in places:
        at = f"complete -c tactus -n '__tactus_at {words}'"
        for each in command['commands']:
            text += f'{at} -f -a {each["words"][-1]} -d {quoted(each["description"])}\n'
        for option in command['options']:
            names = ''.join(f' -l {name[2:]}' if name.startswith('--') else f' -s {name[1:]}'
                            for name in option['names'])
            if names:
                text += f'{at}{names}{fish_values(option)} -d {quoted(option["description"])}\n'
    return text


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    told = subprocess.run([program, 'describe'], check=True, capture_output=True, text=True)
    declared = json.loads(told.stdout)
    tactus = read_command(declared['program'])
    (folder / 'man').mkdir(parents=True, exist_ok=True)
    for command in (tactus, *tactus['commands']):
        page = manual_page(command, declared['version']).encode()
        (folder / 'man' / f'{"-".join(command["words"])}.1.gz').write_bytes(
            gzip.compress(page, mtime=0))
    places = list(places_of(tactus))
    for name, script in (('tactus.bash', bash), ('_tactus', zsh), ('tactus.fish', fish)):
        (folder / name).write_text(script(places))


if __name__ == '__main__':
    main()
