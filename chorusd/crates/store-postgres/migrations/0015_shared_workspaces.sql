-- whether a node has the workspaces of agents in a directory that all share
ALTER TABLE nodes ADD COLUMN shares_workspaces boolean NOT NULL DEFAULT false;
