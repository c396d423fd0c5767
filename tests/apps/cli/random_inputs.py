"""Small random machines, batches and task sets of a seed: most are valid, many task sets are refused."""
import json


def pick(rng, **weighted):
    """One of the names, by weight."""
    return rng.choices(list(weighted), list(weighted.values()))[0]


def machine(rng):
    """A machine: memories behind cpus, up to three GPUs, perhaps costs, a margin, a shared capacity, what a GPU needs to lead."""
    gpus, memories = rng.randint(1, 3), rng.randint(1, 2)
    vertices = {f"mem{i}": {"kind": "memory"} for i in range(memories)}
    vertices |= {f"cpu{i}": {"kind": "cpu"} for i in range(memories)}
    rate = lambda: rng.choice([f"{rng.randint(2, 60)} GB/s", {"nominal": "40 GB/s", "guaranteed": "30 GB/s"}])
    links = [{"from": f"mem{i}", "to": f"cpu{i}", "bandwidth": "80 GB/s", "back": "80 GB/s"} for i in range(memories)]
    if memories > 1:
        links.append({"from": "cpu0", "to": "cpu1", "bandwidth": rate(), "back": rate()})
    for i in range(gpus):
        vertices[f"gpu{i}"] = {"kind": "gpu", "copy_engines": rng.randint(1, 3)}
        if rng.random() < 0.2:
            vertices[f"gpu{i}"]["memory"] = rng.choice(["20 MB", "4 GB"])
        links.append({"from": f"cpu{i % memories}", "to": f"gpu{i}", "bandwidth": rate(), "back": rate()})
    spec = {"name": "drawn", "vertices": vertices, "links": links, "peer_access": rng.choice(["all", "none", "same_domain"])}
    if rng.random() < 0.3:
        spec["shared"] = [{"name": "host-memory", "capacity": "50 GB/s", "members": [{"from": "mem0", "to": "cpu0"}, {"from": "cpu0", "to": "mem0", "cost": 1.3}]}]
    if rng.random() < 0.3:
        spec["margin"] = {"relative": rng.choice([0, 0.1]), "absolute": "10 us"}
    if rng.random() < 0.5:
        spec["setup"] = {"batch": "5 us", "transfer": "2 us", "dispatch": {"nominal": "10 us", "guaranteed": "50 us"}, "job": {"nominal": "0 us", "guaranteed": "1 ms"}, "conductor": "5 us", "conductor_job": {"nominal": "0 us", "guaranteed": "50 us"}}
    if rng.random() < 0.2:
        spec["background"] = [{"from": "mem0", "to": "gpu0", "bandwidth": "500 MB/s"}]
    return spec


def of_kind(spec, kind):
    return [name for name, vertex in spec["vertices"].items() if vertex["kind"] == kind]


def stream(rng, spec, number, sizes):
    """A copy, a kernel, or both; the kernel may be host work."""
    memories, gpus, cpus = of_kind(spec, "memory"), of_kind(spec, "gpu"), of_kind(spec, "cpu")
    kind = pick(rng, up=4, down=3, peer=2, alone=2)
    row = {"name": f"s{number}"}
    if kind != "alone":
        source, target = {"up": (memories, gpus), "down": (gpus, memories), "peer": (gpus, gpus)}[kind]
        row |= {"from": rng.choice(source), "to": rng.choice(target), "size": rng.choice(sizes)}
        if row["from"] == row["to"]:
            return stream(rng, spec, number, sizes)
    if kind == "alone" or rng.random() < 0.4:
        time = rng.randint(1, 3000)
        row["kernel"] = {"time": f"{time} us", "worst": f"{time + rng.choice([0, 300])} us"}
        if kind == "alone" or kind == "down":
            row["kernel"]["on"] = rng.choice(cpus if rng.random() < 0.3 else gpus)
        elif rng.random() < 0.3:
            row["kernel"] = {"throughput": "20 GB/s"}
    return row


def batch(rng, spec):
    sizes = ["0 B", "4 kB", "1 MB", "17 MB", "160 MB"]
    rows = [stream(rng, spec, i, sizes) for i in range(rng.randint(0, 6))]
    return {"version": 1, "machine": "machine.yaml", **({"merging": rng.choice(["on", "off", "transitive"])} if rng.random() < 0.4 else {}), "streams": rows}


def job(rng, spec, sizes):
    steps = []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.3:
            steps.append({"host": f"{rng.randint(10, 900)} us"})
        else:
            steps.append({"batch": [stream(rng, spec, i, sizes) for i in range(rng.randint(1, 3))]})
    return steps


def task(rng, spec, number, given, sizes):
    """@param spec  none: the task declares its Wcet"""
    period = rng.choice([5, 8, 10, 20, 25, 40])
    row = {"name": f"t{number}", "period": f"{period} ms"}
    if rng.random() < 0.4:
        row["deadline"] = f"{rng.choice([0.3, 0.7, 1, 1.5]) * period:g} ms"
    if rng.random() < 0.3:
        row["jitter"] = f"{rng.randint(0, 900)} us"
    if rng.random() < 0.3:
        row["offset"] = f"{rng.randint(0, period)} ms"
    if given:
        row["priority"] = number
    if spec is None or rng.random() < 0.15:
        wcet = rng.choice([0, 100, 900, 2000, 7000])
        row |= {"wcet": f"{wcet} us", **({"best_case": f"{wcet // 2} us"} if rng.random() < 0.4 else {})}
    else:
        row["job"] = job(rng, spec, sizes)
    return row


def task_set(rng, spec):
    """@param spec  none: no machine, all tasks declare their Wcets"""
    whole = {"version": 1, "policy": pick(rng, edf=5, rm=2, dm=2, given=1, cw_edf=1)}
    sizes = ["1 MB", "5 MB"]
    if spec is not None:
        whole |= {"machine": "machine.yaml", "overlap": rng.choice(["off", "on", "auto"]), "parameters": {"image": rng.choice(["2 MB", "20 MB", "90 MB"])}}
        sizes += ["image", "40% of image"]
        if whole["policy"] == "cw_edf":
            whole["overlap"] = "off"
        elif rng.random() < 0.3:
            whole |= {"preemption": "between_batches", **({"cut": "4 MB"} if rng.random() < 0.5 else {})}
    if rng.random() < 0.3 or whole["policy"] == "cw_edf":
        whole["arrivals"] = "periodic"
    tasks = [task(rng, spec, i, whole["policy"] == "given", sizes) for i in range(rng.choices(range(5), [1, 4, 4, 3, 3])[0])]
    whole["tasks"] = tasks
    if spec is not None and tasks and rng.random() < 0.15:
        led = {"name": "look", "period": "20 ms", "job": [{"batch": [{"from": "mem0", "to": "gpu0", "size": "image"}]}]}
        whole |= {"deadline_at": "device", "conductor": rng.choice(["gpu", "host", "auto"]), "host_away": rng.choice(["0 ms", "100 ms"]), "policy": "edf", "arrivals": "sporadic", "tasks": [led]}
        for key in ("preemption", "cut"):
            whole.pop(key, None)
    names = [row["name"] for row in whole["tasks"]]
    if len(names) > 1 and rng.random() < 0.5:
        whole["chains"] = [{"name": "chain", "tasks": names[:rng.randint(2, len(names))], **({"deadline": f"{rng.choice([5, 60, 400])} ms"} if rng.random() < 0.7 else {})}]
    return whole


def faults(rng, names):
    rows = [{"kind": "slow_kernels", "times": 3}, {"kind": "late_completion", "by": "300 us", "jobs": [1, 2]}, {"kind": "lost_gpu", "gpu": "gpu0", "at": "20 ms"}, {"kind": "slow_kernels", "task": rng.choice(names), "times": 2}]
    return {"version": 1, "faults": rng.sample(rows, rng.randint(1, 2))}


def text(document):
    """JSON is YAML."""
    return json.dumps(document, indent=1)
