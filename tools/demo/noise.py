"""What a run noticed of other work on the machine, to be said beside a check that failed."""
import os

NOISY_CV = 0.25    # of a profiled latency: standard deviation over mean
STALL_MS = 10      # shorter ones the kernel's own work explains
STOLEN = 0.02      # of the processors' time, taken by the host


def processor_times():
    """(stolen by the host, all) since the machine started, in ticks; zeros where /proc is not."""
    try:
        with open('/proc/stat', encoding='ascii') as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return ticks[7] if len(ticks) > 7 else 0, sum(ticks)


def noticed(profile, lag_ms, since):
    """A phrase for each sign of noise. `since`: processor_times() of the beginning."""
    signs = []
    if lag_ms >= STALL_MS:
        signs.append(f'the generator was held up for {lag_ms:.0f} ms at once')
    cells = [cell for model in profile['models'] for exit_ in model['exits']
             for cell in exit_['cells']]
    noisy = sum(cell.get('cv', 0) > NOISY_CV for cell in cells)
    if noisy:
        signs.append(f'{noisy} of {len(cells)} profiled latencies vary by more than '
                     f'{100 * NOISY_CV:.0f} %')
    stolen, total = (now - then for now, then in zip(processor_times(), since))
    if total > 0 and stolen / total > STOLEN:
        signs.append(f'the host took {100 * stolen / total:.0f} % of the processors\' time')
    if os.getloadavg()[0] > (os.cpu_count() or 1) + 1:
        signs.append(f'{os.getloadavg()[0]:.1f} programs wanted {os.cpu_count()} processors')
    return signs


def advice(signs):
    """What to make of a failed check."""
    told = '; '.join(signs) if signs else 'nothing out of the ordinary'
    return ('A check failed. Deadlines need a core that is there when it is needed: on a machine '
            'that does\nother work, run this again when it is quiet. '
            f'Noticed of noise: {told}.')
