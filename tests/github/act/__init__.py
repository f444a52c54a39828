"""The workflows under ``act``, a runner of GitHub's workflows that is not ours.

    hub = Hub(place)                                   # what https://github.com/ stands for, on disk
    run = Runner(hub, place).run(Start(event="pull_request", ...))
    run.jobs, run.outputs("Measure and judge"), run.annotations, run.summary, run.artifacts

act parses the files, evaluates expressions, decides on jobs and steps, passes outputs on, runs composite
actions and obeys workflow commands. GitHub's API is the fake one. Neither network nor container is used.
What act 0.2.89 cannot do is listed in ``docs/dev/release.md``; ``hub.adapt`` changes the text for it.
"""
