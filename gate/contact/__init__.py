"""First contact: what the measuring side assumes of a device, asked of the device itself.

``worker`` asks in processes of its own, ``conductor`` starts those and goes on where one ends, ``bundle``
keeps what was seen. An assumption is one function in a module that :mod:`gate.contact.worker` lists.
"""
