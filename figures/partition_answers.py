"""Symphony's Appendix A.2 (Figure 16): how evenly a solver spreads 800 models over 20 sub-clusters.

The models of the paper's Tables 3 and 4 with the memory of their weights: four bytes for each of
the parameters that their authors or Keras's list of applications publish. The paper does not say
how much memory its models take.
"""
import collections

import draws
from program import write_toml

# Millions of parameters: keras.io/api/applications; SSDMobilenet: Howard et al., "MobileNets",
# Table 13; BERT: Devlin et al., BERT-base.
ZOO = {
    'NASNetMobile': 5.3, 'MobileNetV3Small': 2.9, 'DenseNet169': 14.3, 'DenseNet121': 8.1,
    'DenseNet201': 20.2, 'EfficientNetV2B0': 7.2, 'MobileNetV3Large': 5.4, 'InceptionV3': 23.9,
    'EfficientNetV2B1': 8.2, 'ResNet50V2': 25.6, 'ResNet152V2': 60.4, 'ResNet101V2': 44.7,
    'InceptionResNetV2': 55.9, 'EfficientNetB0': 5.3, 'MobileNetV2': 3.5, 'ResNet101': 44.7,
    'EfficientNetB1': 7.9, 'ResNet50': 25.6, 'EfficientNetV2B2': 10.2, 'VGG19': 143.7,
    'ResNet152': 60.4, 'MobileNet': 4.3, 'VGG16': 138.4, 'EfficientNetB2': 9.2,
    'EfficientNetV2B3': 14.5, 'NASNetLarge': 88.9, 'EfficientNetV2S': 21.6, 'EfficientNetB3': 12.3,
    'EfficientNetV2L': 119.0, 'EfficientNetV2M': 54.4, 'EfficientNetB5': 30.6, 'Xception': 22.9,
    'SSDMobilenet': 6.8, 'EfficientNetB4': 19.5, 'BERT': 110.0, 'EfficientNetB6': 43.3,
    'EfficientNetB7': 66.7}


def problem_of(seed, models=800, sub_clusters=20):
    """The same seed, the same problem. Each model is a variant of one of the zoo, all equally
    likely; its rate is drawn from an exponential distribution, whose mean changes no imbalance.
    Ours, as the paper names no limits: a backend of 11 GB, and 1 GB for whatever runs."""
    choices = draws.Stream(seed, 'partition experiment/models')
    rates = draws.Stream(seed, 'partition experiment/rates')
    names, variants, drawn = list(ZOO), collections.Counter(), []
    for _ in range(models):
        name = names[choices.below(len(names))]
        variants[name] += 1
        drawn.append({'name': f'{name}-{variants[name]}', 'rate_rps': rates.exponential(1 / 100),
                      'static_mb': ZOO[name] * 1e6 * 4 / (1 << 20), 'dynamic_mb': 1024.0})
    return {'cluster': {'sub_clusters': sub_clusters, 'memory_mb': 11264.0}, 'models': drawn}


def of_partition(label, point, options):
    """Of configuration x (its seed), by `with.solver` ("local search" or "random") in
    `with.trials`: rate_percent and memory_percent, the imbalances, objective and trials."""
    seed = int(point.x)
    random = point.withs['solver'] == 'random'
    solver = ['--solver', 'random'] if random else ['--descents', 1]
    file = write_toml(problem_of(seed), options.program.file('problem.toml'))
    found = options.program.json('plan', 'partition', file, '--seed', seed,
                                 '--trials', point.withs['trials'], *solver)
    return {label: {point.x: {
        'rate_percent': 100 * found['rate_imbalance'],
        'memory_percent': 100 * found['memory_imbalance'], 'objective': found['objective'],
        'trials': found['trials']}}}
