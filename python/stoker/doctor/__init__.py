# SPDX-License-Identifier: Apache-2.0
"""The doctor: runs a training script, finds by experiment what it waits for, and tries the remedy.

python -m stoker.doctor train.py --lr 0.1          the script as it is, in fresh processes
with stoker.doctor(): ...                          in a notebook or a running program: what can be measured in place

>>> from stoker.doctor.verdict import judge
>>> judge({"runs": []})["verdict"] is None
True
"""
